"""Attention = scorer x alignment x heads, wherever it is used."""

from zoo.attention.assembly import Attention
from zoo.attention.chooser import choosing, drawing, refuse_drawing
from zoo.attention.fused import fused_softmax
from zoo.attention.recorder import Recorded, recording

__all__ = [
    "Attention",
    "Recorded",
    "choosing",
    "drawing",
    "fused_softmax",
    "recording",
    "refuse_drawing",
]
