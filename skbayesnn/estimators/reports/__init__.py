"""Reports: evidence, verdicts, diagnostics and comparisons in words."""
