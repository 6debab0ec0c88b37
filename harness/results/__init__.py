"""Evaluates run files: their lines, and the tables, comparisons, explanations and histories made from them."""
