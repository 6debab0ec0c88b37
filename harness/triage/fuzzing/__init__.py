"""Fuzzing: random valid calls of one operator, held against the oracle; what fails is grouped and shrunk."""
