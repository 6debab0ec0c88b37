"""Measurements whose tables stand in docs/performance.md."""
