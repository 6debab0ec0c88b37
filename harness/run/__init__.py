"""A run: cases executed on targets, judged and written as they end."""
