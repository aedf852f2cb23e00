"""Inputs: validation of parameters and rows, and their conversion."""
