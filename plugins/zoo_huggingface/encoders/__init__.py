"""Text encoders: masked-token heads and sentence vectors."""
