"""Graphs of several operators as specs: `schema` is their format, `pattern` one graph with its parameters,
`composition` its oracle, `variations` its cases."""
