"""Generation: the one loop that all samplers, filters and decoders share."""

from zoo.generation.loop import decode, stream
from zoo.generation.speaking import speak

__all__ = ["decode", "speak", "stream"]
