"""Fourier transforms, windows and mel weights."""
