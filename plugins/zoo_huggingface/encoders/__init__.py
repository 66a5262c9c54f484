"""Text encoders, with or without a head."""
