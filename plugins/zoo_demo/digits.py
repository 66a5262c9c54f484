"""Images of digits, drawn with strokes of a pen in the format of MNIST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

SIZE = 28
_BOX = 19
"""Height of a digit in pixels."""
_PEN = 1.3
"""Half the width of a stroke in pixels."""
_SLANT = 0.15
_POINTS = 12
"""Points of a curve between two control points."""

Point = tuple[float, float]

# Control points (x, y) of the strokes of each digit, y downward; the height of a digit is 1.
STROKES: Mapping[str, Sequence[Sequence[Point]]] = {
    "0": [[(0.4, 0), (0.12, 0.2), (0.08, 0.62), (0.3, 1), (0.58, 0.8), (0.64, 0.35), (0.4, 0)]],
    "1": [[(0.32, 0), (0.31, 0.35), (0.3, 0.7), (0.3, 1)]],
    "2": [
        [(0.08, 0.2), (0.3, 0), (0.58, 0.18), (0.45, 0.5), (0.2, 0.8), (0.06, 0.98)],
        [(0.06, 0.98), (0.35, 0.95), (0.68, 0.97)],
    ],
    "3": [
        [(0.1, 0.08), (0.4, 0), (0.58, 0.2), (0.42, 0.42), (0.26, 0.47)],
        [(0.26, 0.47), (0.52, 0.55), (0.6, 0.78), (0.38, 1), (0.05, 0.93)],
    ],
    "4": [
        [(0.12, 0), (0.06, 0.3), (0.1, 0.5), (0.35, 0.52), (0.6, 0.46)],
        [(0.62, 0.05), (0.58, 0.5), (0.54, 1)],
    ],
    "5": [
        [(0.62, 0), (0.4, 0.02), (0.18, 0.02)],
        [(0.18, 0.02), (0.14, 0.22), (0.12, 0.42)],
        [(0.12, 0.42), (0.4, 0.4), (0.58, 0.62), (0.42, 0.95), (0.05, 0.96)],
    ],
    "6": [
        [(0.5, 0), (0.22, 0.28), (0.08, 0.68), (0.3, 1), (0.56, 0.8), (0.4, 0.56), (0.12, 0.72)],
    ],
    "7": [
        [(0.04, 0.04), (0.32, 0.04), (0.62, 0.02)],
        [(0.62, 0.02), (0.46, 0.38), (0.32, 0.7), (0.24, 1)],
    ],
    "8": [
        [(0.55, 0.12), (0.3, 0), (0.12, 0.2), (0.35, 0.48), (0.58, 0.78), (0.3, 1), (0.08, 0.8)],
        [(0.08, 0.8), (0.3, 0.52), (0.58, 0.25), (0.55, 0.12)],
    ],
    "9": [
        [(0.56, 0.2), (0.34, 0), (0.1, 0.2), (0.22, 0.44), (0.48, 0.36), (0.58, 0.14)],
        [(0.58, 0.14), (0.55, 0.5), (0.48, 1)],
    ],
}


def draw_digit(label: str) -> NDArray[np.uint8]:
    """Return the image [28, 28] of a digit; its centre of mass is in the centre, as in MNIST."""
    curves = [_curve(np.array(points)) for points in STROKES[label]]
    ink = _draw(curves, np.zeros(2))
    y, x = np.indices(ink.shape) + 0.5
    mass = np.array([(ink * x).sum(), (ink * y).sum()]) / ink.sum()
    return (255 * _draw(curves, SIZE / 2 - mass)).round().astype(np.uint8)


def _curve(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points of a Catmull-Rom spline through the control points, in pixels."""
    padded = np.concatenate([points[:1], points, points[-1:]])
    t = np.linspace(0, 1, _POINTS)[:, None]
    curve = np.concatenate(
        [
            b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
            for a, b, c, d in zip(padded, padded[1:], padded[2:], padded[3:], strict=False)
        ]
    )
    curve[:, 0] -= _SLANT * (curve[:, 1] - 0.5)
    pixels: NDArray[np.float64] = curve * (_BOX - 2 * _PEN) + (SIZE - _BOX) / 2 + _PEN
    return pixels


def _draw(curves: Sequence[NDArray[np.float64]], shift: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ink [28, 28] of the curves, from 0 to 1."""
    y, x = np.indices((SIZE, SIZE)) + 0.5
    centres = np.stack([x, y], axis=-1)[:, :, None]  # [28, 28, 1, 2]
    points = np.concatenate(curves) + shift
    distance = np.linalg.norm(centres - points, axis=-1).min(axis=-1)
    ink: NDArray[np.float64] = np.clip(_PEN + 0.5 - distance, 0, 1)
    return ink
