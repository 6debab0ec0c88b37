"""Divides a run among processes."""
