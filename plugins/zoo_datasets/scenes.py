"""Dataset 'scenes'."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pydantic

from zoo import DataError, ZooError
from zoo.plugin import (
    Array,
    Blueprint,
    Dataset,
    Example,
    Examples,
    Field,
    Values,
    random_integers,
    random_numbers,
)
from zoo_datasets.idx import Idx

Side = Annotated[int, pydantic.Field(ge=1, le=4096)]
Number = Annotated[int, pydantic.Field(ge=1, le=64)]


class Scenes(Dataset):
    """Scenes of one or several images of another dataset at random positions, on black.

    Images are side by side without overlap, at any height. The text of a scene has their labels
    from left to right. A scene depends on the seed and its index only.

    Args:
        data: a dataset with an image and a label, the fields ``source`` and ``target``.
        size: height and width of a scene.
        least: smallest number of images.
        most: largest number of images.
        count: number of scenes; by default that of the images.
        target: ``text``: the labels, separated by spaces; ``label``: the label of the only image.
        seed: random seed.

    Fields:
        source: image. target: text or label.
    """

    name: ClassVar[str] = "scenes"
    test_params: ClassVar[Mapping[str, Any]] = {"size": [9, 12]}

    def __init__(
        self,
        *,
        data: Blueprint[Dataset],
        size: tuple[Side, Side],
        least: Number = 1,
        most: Number = 1,
        count: Annotated[int, pydantic.Field(ge=1, le=10**8)] | None = None,
        target: Literal["text", "label"] = "text",
        seed: Annotated[int, pydantic.Field(ge=0, lt=2**63)] = 0,
    ) -> None:
        if least > most:
            raise ZooError(f"least ({least}) must not be greater than most ({most})")
        if target == "label" and most > 1:
            raise ZooError(f"most is {most}, but a scene with one label has one image")
        self.data: Dataset = data.build()
        self.size, self.least, self.most = size, least, most
        self.count, self.target, self.seed = count, target, seed

    def fields(self) -> Mapping[str, Field]:
        return {"source": Field("image"), "target": Field(self.target)}

    def open(self, *, evaluation: bool = False) -> Examples:
        return _Scenes(self, self.data.open(evaluation=evaluation))

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        data = {"type": "idx", **Idx.write_example(folder)}
        return {"data": data, "size": [9, 12], "count": 4}


class _Scenes(Examples):
    def __init__(self, dataset: Scenes, images: Examples) -> None:
        self.dataset = dataset
        self.images = images
        if not len(images):
            raise DataError(f"dataset '{dataset.data.name}' has no images")

    def __len__(self) -> int:
        return self.dataset.count or len(self.images)

    def __getitem__(self, index: int) -> Example:
        return {name: values[0] for name, values in self.read_many(np.array([index])).items()}

    def read_many(self, indices: Array) -> Mapping[str, Values]:
        scene = self.dataset
        numbers = random_numbers(scene.seed, indices, 1 + 3 * scene.most)
        counts = scene.least + random_integers(numbers[:, 0], scene.most - scene.least + 1)
        choices, spaces, heights = np.split(numbers[:, 1:], 3, axis=1)  # [B, most] each
        used = np.arange(scene.most) < counts[:, None]
        chosen = self.images.read_many(random_integers(choices[used], len(self.images)))
        ends = np.cumsum(counts).tolist()
        bounds = list(itertools.pairwise([0, *ends]))
        scenes = [
            self._place(chosen["source"][start:end], spaces[row], heights[row])
            for row, (start, end) in enumerate(bounds)
        ]
        labels = [chosen["target"][start:end] for start, end in bounds]
        return {
            "source": np.stack(scenes) if len({s.shape for s in scenes}) == 1 else scenes,
            "target": [
                found[0] if scene.target == "label" else " ".join(map(str, found))
                for found in labels
            ],
        }

    def _place(self, images: Values, spaces: Array, heights: Array) -> Array:
        """Return a scene of images; the random numbers are for the columns between them and for
        the rows above them."""
        height, width = self.dataset.size
        canvas = np.zeros((height, width, images[0].shape[2]), np.uint8)
        free = width - sum(image.shape[1] for image in images)
        if free < 0 or max(image.shape[0] for image in images) > height:
            raise DataError(f"{len(images)} images do not fit into a scene of {height} x {width}")
        used = 0  # width of the images so far
        lefts = sorted(int(number * (free + 1)) for number in spaces[: len(images)].tolist())
        for image, space, number in zip(images, lefts, heights.tolist(), strict=False):
            h, w = image.shape[:2]
            top, left = int(number * (height - h + 1)), used + space
            canvas[top : top + h, left : left + w] = image
            used += w
        return canvas

    def origin(self, index: int) -> str:
        return f"scene {index} of {self.images.origin(0)}"
