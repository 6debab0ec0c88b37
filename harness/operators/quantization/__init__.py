"""Quantisation to integers and back, and products of integers with scales and zero points."""
