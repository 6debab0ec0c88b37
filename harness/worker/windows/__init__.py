"""Programs of the Windows Python, under Wine and on Windows: start the worker, patch Wine, describe the
device."""
