"""Generation: the one loop that all samplers, filters and decoders share."""

from zoo.decoding.loop import decode, stream
from zoo.decoding.speaking import speak

__all__ = ["decode", "speak", "stream"]
