"""Expectation files held against runs and brought up to date."""
