"""`python -m harness`: the same as the console script `harness`."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # ends the process without a traceback until a command takes it

from harness.commands.start import main

if __name__ == "__main__":
    main()
