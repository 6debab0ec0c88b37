"""Lowers a case to a call of DirectML's own API, without executing anything, and finds the feature level that
first allows it."""
