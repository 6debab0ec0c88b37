"""What cases show: attribute values, element types and ranks, interactions of factors, kinds of input."""
