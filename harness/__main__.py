"""`python -m harness`: the same as the console script `harness`."""

from harness.commands.start import main

if __name__ == "__main__":
    main()
