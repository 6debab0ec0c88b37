"""Specs of graphs: their format, their oracle, their cases, their runs."""
