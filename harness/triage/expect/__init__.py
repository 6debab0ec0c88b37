"""Checks expectation files against runs, and updates them."""
