"""What many runs say over time."""
