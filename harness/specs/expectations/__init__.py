"""Entries of known deviations: read, held against cases and targets, and checked before and after a run."""
