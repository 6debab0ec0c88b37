"""Explains what failures have in common, in terms of their cases."""
