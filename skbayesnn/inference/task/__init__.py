"""Task: rows, settings and limits of a fit."""
