"""Repros: write a failing case as a folder that someone without the harness can run and paste into an issue."""
