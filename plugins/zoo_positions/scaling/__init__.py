"""Scaling of the angles of rotary positions, for longer contexts."""
