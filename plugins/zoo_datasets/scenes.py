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
        bounds = itertools.pairwise([0, *np.cumsum(counts).tolist()])
        labels = [chosen["target"][start:end] for start, end in bounds]
        if scene.target == "label":
            targets = [found[0] for found in labels]
        else:
            targets = [" ".join(map(str, found)) for found in labels]
        return {"source": self._place(chosen["source"], used, spaces, heights), "target": targets}

    def _place(self, images: Values, used: Array, spaces: Array, heights: Array) -> Values:
        """Return scenes [B, H, W, C].

        Args:
            images: the images of all scenes, one scene after the other.
            used: whether a scene has an image at each place [B, most].
            spaces: random numbers for the columns between the images [B, most].
            heights: random numbers for the rows above the images [B, most].
        """
        height, width = self.dataset.size
        sizes = np.zeros((*used.shape, 2), np.int64)
        sizes[used] = [image.shape[:2] for image in images]
        h, w = sizes[..., 0], sizes[..., 1]
        free = width - w.sum(axis=1, keepdims=True)
        wrong = np.flatnonzero((free[:, 0] < 0) | (h.max(axis=1) > height))
        if len(wrong):
            number = int(used[wrong[0]].sum())
            raise DataError(f"{number} images do not fit into a scene of {height} x {width}")
        columns = np.sort(np.where(used, random_integers(spaces, free + 1), width), axis=1)
        lefts = columns + np.cumsum(w, axis=1) - w
        tops = random_integers(heights, height - h + 1)
        rows = np.nonzero(used)[0]
        channels = [image.shape[2] for image in images]
        first = [channels[i] for i in np.searchsorted(rows, np.arange(len(used))).tolist()]
        scenes: Values
        if len(set(first)) == 1:
            scenes = np.zeros((len(used), height, width, first[0]), np.uint8)
        else:
            scenes = [np.zeros((height, width, C), np.uint8) for C in first]
        places = zip(rows.tolist(), tops[used].tolist(), lefts[used].tolist(), strict=True)
        for image, (row, top, left) in zip(images, places, strict=True):
            scenes[row][top : top + image.shape[0], left : left + image.shape[1]] = image
        return scenes

    def origin(self, index: int) -> str:
        return f"scene {index} of {self.images.origin(0)}"
