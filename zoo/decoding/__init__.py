"""Generation: the one loop that all samplers, filters and decoders share."""

from zoo.decoding.loop import decode, stream

__all__ = ["decode", "stream"]
