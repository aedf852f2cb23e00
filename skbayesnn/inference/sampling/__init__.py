"""Sampling: transitions, annealed populations and chains."""
