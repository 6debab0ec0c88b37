"""Specs: one YAML file per operator, read, checked and converted to typed records, with every problem at its
line."""
