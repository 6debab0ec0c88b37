"""A run divided among processes."""
