"""Programs of the Windows Python, under Wine and on Windows: the worker started there, Wine completed, the
device described."""
