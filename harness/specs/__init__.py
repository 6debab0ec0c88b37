"""Specs: one YAML file per operator, read, checked and converted to typed records, with every problem at its
line.

`expand` makes the cases of specs, `selection` chooses among them, `blocks` divides them; `reading`, `sweeps`,
`coverage`, `expectations`, `cache` and `graphs` are what these need.
"""
