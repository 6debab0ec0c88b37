"""The language of rules over cases, and the search for the shortest that separate some cases from others."""
