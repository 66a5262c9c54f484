"""Recognition of digits from a sequence of glimpses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zoo.errors import ZooError
from zoo.generation.prediction import Prediction, predict
from zoo.interfaces import Model
from zoo_demo.digits import draw_digit


@dataclass(frozen=True)
class Digit:
    """A recognised digit.

    Attributes:
        label: the correct class.
        image: the pixels [H, W].
        locations: the centre (x, y) of each glimpse in pixels.
        size: the side of a glimpse in pixels; None if it is not known.
    """

    label: str
    image: NDArray[np.uint8]
    prediction: Prediction
    locations: list[tuple[float, float]]
    size: int | None

    @property
    def is_correct(self) -> bool:
        return self.prediction.label == self.label


def recognise(model: Model, labels: Sequence[str]) -> list[Digit]:
    """Draw digits and predict them; return them with the locations of the glimpses.

    The locations are the extras `locations` [B, G, 2] of the outputs, (x, y) from -1 to 1.
    """
    images = [draw_digit(label) for label in labels]
    outputs: list[Any] = []
    handle = model.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
    try:
        predictions = predict(model, [image[..., None] for image in images])
    finally:
        handle.remove()
    locations = outputs[0].extras.get("locations")
    if locations is None:
        raise ZooError(
            f"model '{model.name}' returns no locations of glimpses, which the demo shows"
        )
    size = (model.spec or {})["model"].get("retina", {}).get("size")
    return [
        Digit(label, image, prediction, _to_pixels(glimpses, image), size)
        for label, image, prediction, glimpses in zip(
            labels, images, predictions, locations.float().tolist(), strict=True
        )
    ]


def _to_pixels(
    locations: Sequence[Sequence[float]], image: NDArray[np.uint8]
) -> list[tuple[float, float]]:
    height, width = image.shape
    return [((x + 1) / 2 * width, (y + 1) / 2 * height) for x, y in locations]
