"""Where cases run: the targets, their requirements on this machine, and the processes that serve them."""
