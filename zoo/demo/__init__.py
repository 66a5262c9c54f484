"""A real model at work in under a minute: learn to reverse sequences, then look inside."""
