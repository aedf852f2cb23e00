"""Evidence: its terms, Occam factors and symmetries, and its maximisation."""
