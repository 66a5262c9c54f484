"""What worker processes do: check specs, run laws, run models."""
