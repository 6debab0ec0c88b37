"""What planning found, kept in the user's cache, and the plans of many specs at once."""
