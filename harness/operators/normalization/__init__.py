"""Operators that divide by a norm, a variance or a sum along axes."""
