"""Optimisation: Levenberg-Marquardt steps, quasi-Newton steps and batches."""
