"""Where cases run: which targets there are, what they need on this machine, and the processes that serve
them."""
