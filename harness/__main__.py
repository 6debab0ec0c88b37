"""`python -m harness`: the same as the console script `harness`."""

from harness.start import main

if __name__ == "__main__":
    main()
