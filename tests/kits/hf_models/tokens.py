"""Special tokens of the small models."""

PAD, EOS = 0, 2
