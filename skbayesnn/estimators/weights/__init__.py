"""Weights in the units of the user, and their posterior."""
