"""`python -m harness`: the same as the console script `harness`."""

import _signal  # type: ignore[import-not-found] # built in: `signal` would read five modules first

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(
        _signal.SIGINT, _signal.SIG_DFL
    )  # ends the process without a traceback until a command takes it

from harness.commands.start import main

if __name__ == "__main__":
    main()
