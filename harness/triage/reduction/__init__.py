"""Reduction: turns a failing case into the smallest one that fails in the same way."""
