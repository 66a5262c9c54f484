"""Image models."""
