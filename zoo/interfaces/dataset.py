"""Interface of datasets: examples in files, before preprocessing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zoo.interfaces.batch_schema import TensorSchema
from zoo.interfaces.component import Component

Content = Literal["text", "texts", "label", "labels", "messages", "image", "audio", "array"]
"""The type of a field's values:

- ``text``: a string; ``texts``: a list of strings;
- ``label``: a string or an integer; ``labels``: a list of them;
- ``messages``: a list of mappings with ``role`` and ``content``, a conversation;
- ``image``: an array of uint8 [H, W, C] with 1 or 3 channels;
- ``audio``: an `Audio`;
- ``array``: a numeric array as the model takes it, which needs no preprocessor.
"""


class Field(NamedTuple):
    """Declares one field of the examples of a dataset.

    Attributes:
        content: the type of the values.
        schema: shape and dtype of an ``array``, with the dimension "B" first, as in a batch.
    """

    content: Content
    schema: TensorSchema | None = None


class Audio(NamedTuple):
    """A waveform: samples [L] in float32 from -1 to 1, and the sampling rate in Hz."""

    samples: NDArray[np.float32]
    rate: int


Example = Mapping[str, Any]
"""The values of the fields of one example, by name."""


Values = Sequence[Any] | NDArray[Any]
"""The values of one field of several examples, in a sequence or along the first dimension."""


class Examples(ABC):
    """An open dataset: random access to its examples.

    An instance is used by several threads and, after pickling or forking, by several processes.
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, index: int) -> Example:
        """Return an example; raise DataError with its origin if it is not valid."""

    @abstractmethod
    def origin(self, index: int) -> str:
        """Return where an example is, for error messages: ``train.en:17``."""

    def position_names(self, index: int) -> Sequence[str] | None:
        """Return the names of the positions of an example, such as the IDs of the nodes of a graph;
        by default None: they have none."""
        return None

    def read_many(self, indices: NDArray[np.int64]) -> Mapping[str, Values]:
        """Return the values of several examples, by name of the field.

        Override it if that is faster than one by one. The values of a field may be one array with
        an additional first dimension. Raise DataError if one of the examples is not valid; they are
        then read one by one.
        """
        examples = [self[index] for index in indices.tolist()]
        return {name: [example[name] for example in examples] for name in examples[0]}

    def decodes_files(self) -> bool:
        """Return whether an example is decoded from a file each time it is read, as an image or a
        recording; a training then keeps it in memory. By default False."""
        return False

    def sizes(self) -> Sequence[int] | None:
        """Return the length of each example without reading it, for length buckets, or None if
        lengths are known only after preprocessing."""
        return None


class Dataset(Component, ABC):
    """Reads examples from files or makes them.

    The names of the fields are keys of a model's batch, such as ``source`` and ``target``. The
    constructor does not open files; `open` does.

    Laws:
        examples have the declared fields; reading twice, in any order, by several threads and after
        pickling returns the same examples; `read_many` returns their values; every example has its
        own origin; the constructor and `fields` open no file; a missing file raises DataError with
        its path when the dataset is opened; opening and reading do not change files.
    """

    kind: ClassVar[str] = "dataset"

    @abstractmethod
    def fields(self) -> Mapping[str, Field]:
        """Return the fields of the examples. No file is opened."""

    @abstractmethod
    def open(self, *, evaluation: bool = False) -> Examples:
        """Open the files; raise DataError if they are missing or do not fit each other.

        Args:
            evaluation: whether the examples are for evaluation. A ``text`` may then be a list of
                alternative references, of which the first is used for the loss.
        """

    @classmethod
    @abstractmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        """Write small example files into a folder, for the laws, and return the parameters of a
        dataset that reads them."""
