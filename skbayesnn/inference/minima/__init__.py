"""Minima: starting points, training, and the distinct minima that are found."""
