"""Finds the release that changed a case."""
