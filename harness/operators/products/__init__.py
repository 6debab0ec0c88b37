"""Products of matrices and convolutions: sums of products, in groups, over windows, along letters."""
