"""Elementwise operators: each element of the output from the elements of the inputs at its place."""
