"""Noise models: fits of every likelihood of regression, and tests of residuals."""
