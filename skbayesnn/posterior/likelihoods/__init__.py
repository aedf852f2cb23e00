"""Likelihoods: one file for each noise model."""
