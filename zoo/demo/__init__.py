"""Demo: train a small model to reverse sequences."""
