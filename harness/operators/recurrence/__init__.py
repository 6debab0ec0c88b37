"""RNN, GRU and LSTM: family, activations and formulas."""
