"""Generation: one decoding loop for all decoders, samplers and filters."""

from zoo.generation.loop import decode, stream_tokens
from zoo.generation.request import DecodeRequest

__all__ = ["DecodeRequest", "decode", "stream_tokens"]
