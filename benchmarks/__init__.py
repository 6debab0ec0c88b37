"""The project's own benchmarks: `python -m benchmarks` prints the table that `docs/performance.md` keeps."""
