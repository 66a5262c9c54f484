"""Looking inside models: what their attention does on an input, and pictures of it."""
