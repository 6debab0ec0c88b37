"""Attention, linear attention and rotary embedding: family, rules and formulas."""
