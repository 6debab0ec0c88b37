"""The release that changed a case."""
