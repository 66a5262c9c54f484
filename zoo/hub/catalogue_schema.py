"""The keys of a catalogue; the signatures are the schema, as for specs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from zoo.registry.blueprint import Blueprint

NonEmptyText = Annotated[str, Field(min_length=1, max_length=1_000)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Published weights: repository, commit, and sha256 of the file."""

    hub: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*$")]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    sha256: Sha256 | None = None
    file: Annotated[str, Field(pattern=r"^[\w-]+(\.[\w-]+)*$")] = "model.safetensors"


@dataclass(frozen=True, kw_only=True)
class DataLicence:
    """A data set that a model was trained on, and its licence."""

    name: NonEmptyText
    licence: NonEmptyText
    attribution: NonEmptyText | None = None
    url: NonEmptyText | None = None


class Shipped:
    """Weights in a file next to the catalogue or in an installed package (`zoo.hub.shipped`).

    Args:
        file: path relative to the catalogue.
        sha256: hash of the file.
        bytes: size of the file.
        dtype: dtype of the stored weights.
        recipe: the recipe that trained the model and that its results are computed with.
        data: the licences of the training data.
    """

    def __init__(
        self,
        *,
        file: Annotated[str, Field(pattern=r"^[\w-]+([./][\w-]+)*$")],
        sha256: Sha256,
        bytes: Annotated[int, Field(ge=1)],
        dtype: NonEmptyText,
        recipe: NonEmptyText,
        data: Sequence[Blueprint[DataLicence]],
    ) -> None:
        self.file = file
        self.sha256 = sha256
        self.bytes = bytes
        self.dtype = dtype
        self.recipe = recipe
        self.data: tuple[DataLicence, ...] = tuple(licence.build() for licence in data)

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "data": [vars(licence) for licence in self.data]}


@dataclass(frozen=True, kw_only=True)
class Result:
    """One evaluation result.

    Attributes:
        metric: name of the metric component.
        label: displayed name; default: ``metric``. For example "phoneme error rate" for the metric
            ``wer`` over phonemes.
    """

    metric: NonEmptyText
    value: float
    dataset: NonEmptyText
    split: NonEmptyText | None = None
    task: NonEmptyText | None = None
    source: NonEmptyText | None = None
    label: NonEmptyText | None = None

    @property
    def name(self) -> str:
        """The name to show."""
        return self.label or self.metric


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=96)]
    spec: NonEmptyText
    paper: NonEmptyText
    licence: NonEmptyText
    weights: Blueprint[Weights] | None = None
    shipped: Blueprint[Shipped] | None = None
    results: Sequence[Blueprint[Result]] = ()


@dataclass(frozen=True, kw_only=True)
class CatalogueFile:
    zoo: Annotated[int, Field(ge=1, le=1)]
    models: Sequence[Blueprint[ModelRow]]
