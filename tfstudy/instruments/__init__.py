"""What a trained model does inside: one file for each instrument."""
