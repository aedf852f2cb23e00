"""Choice: hidden layers by evidence or held-out rows, and models averaged by evidence."""
