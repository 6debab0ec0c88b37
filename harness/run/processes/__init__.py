"""Runs blocks of cases in this process, or in several that are forked from it."""
