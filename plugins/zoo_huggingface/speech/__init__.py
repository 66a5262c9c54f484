"""Speech models."""
