"""Operators that make one element of the elements along axes, or of all up to a place; the losses."""
