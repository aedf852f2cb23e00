"""Joint densities of weights, precisions and noise, for sampling."""
