"""Runs on the nodes of a Dask cluster: blocks of cases are its tasks, which return lines of the run file."""
