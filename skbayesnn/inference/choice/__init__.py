"""Choice of hidden layers and noise models, by evidence or held-out rows."""
