"""A run on the nodes of a Dask cluster: blocks of cases are its tasks, lines of the run file what they return."""
