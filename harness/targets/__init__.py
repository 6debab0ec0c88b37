"""Where cases run: the targets, what they need on this machine, and the processes that serve them."""
