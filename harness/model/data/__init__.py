"""Published facts that the harness relies on, as data files."""
