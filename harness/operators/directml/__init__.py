"""A case as a call of DirectML's own API, in which nothing is executed, and the feature level that first allows it."""
