"""Operators that make a tensor from its shape, from attributes, or by drawing it from a law."""
