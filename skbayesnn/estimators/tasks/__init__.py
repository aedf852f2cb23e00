"""Tasks: regression and classification."""
