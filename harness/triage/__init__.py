"""Follows up a failure: the smallest case, a folder for a bug report, the release that changed it, an
expectation."""
