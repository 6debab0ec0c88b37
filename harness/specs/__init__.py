"""Specs: one YAML file per operator, read, checked and turned into typed records, with every problem at its
line."""
