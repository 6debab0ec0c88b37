"""Sweeps: the alternatives that they list, how these combine to calls, which combinations are chosen, and the
inputs of each."""
