"""Evaluates many runs over time."""
