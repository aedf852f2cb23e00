"""Priors of weights, and hyperpriors of precisions."""
