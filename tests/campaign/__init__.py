"""A campaign of faults and damaged files against the harness itself: `python -m tests.campaign --faults 1000
--inputs 20000 --seed 1`.

`faults` sends signals to runs; `inputs` damages every kind of file that the harness reads. Neither is part of
the default tests, which run a short form of both.
"""
