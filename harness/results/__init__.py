"""All that is known from a run file: its lines, the tables, comparisons, explanations and histories made of
them."""
