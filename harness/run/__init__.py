"""A run: executes cases on targets, and judges and writes them as they end."""
