"""Operators that move, repeat, join or omit elements and compute nothing, and those that write to places
that indices name."""
