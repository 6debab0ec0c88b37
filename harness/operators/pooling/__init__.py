"""Pools and what puts their elements back; the family of operators with a sliding window."""
