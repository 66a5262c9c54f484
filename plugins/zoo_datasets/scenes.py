"""Dataset 'scenes'."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pydantic

from zoo import DataError, ZooError
from zoo.plugin import Array, Blueprint, Dataset, Example, Examples, Field
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
        scene = self.dataset
        rng = np.random.default_rng((scene.seed, index))
        number = int(rng.integers(scene.least, scene.most + 1))
        chosen = [self.images[int(i)] for i in rng.integers(len(self.images), size=number)]
        canvas = self._place([example["source"] for example in chosen], rng)
        labels = [example["target"] for example in chosen]
        text = " ".join(str(label) for label in labels)
        return {"source": canvas, "target": labels[0] if scene.target == "label" else text}

    def _place(self, images: list[Array], rng: np.random.Generator) -> Array:
        height, width = self.dataset.size
        canvas = np.zeros((height, width, images[0].shape[2]), np.uint8)
        free = width - sum(image.shape[1] for image in images)
        if free < 0 or max(image.shape[0] for image in images) > height:
            raise DataError(f"{len(images)} images do not fit into a scene of {height} x {width}")
        used = 0  # width of the images so far
        spaces = sorted(rng.integers(free + 1, size=len(images)).tolist())
        for image, space in zip(images, spaces, strict=True):
            h, w = image.shape[:2]
            top, left = int(rng.integers(height - h + 1)), used + space
            canvas[top : top + h, left : left + w] = image
            used += w
        return canvas

    def origin(self, index: int) -> str:
        return f"scene {index} of {self.images.origin(0)}"
