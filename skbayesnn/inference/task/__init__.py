"""Task: rows, settings, limits, time, and progress of a fit."""
