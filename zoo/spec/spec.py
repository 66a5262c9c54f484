"""Specs: sections, `extends`, overrides, and the resolved form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from zoo.about import DISTRIBUTION
from zoo.errors import Place, Problem, SpecError
from zoo.files import FILE_NAME, MAX_NAME
from zoo.interfaces import (
    Adapter,
    Filter,
    Initialiser,
    Metric,
    Model,
    Objective,
    Preprocessor,
    Sampler,
)
from zoo.interfaces.importer import Importer
from zoo.interfaces.signature import constructor_arguments
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.document import Document
from zoo.spec.extending import Source as Source, merge_source
from zoo.spec.providers import describe_provider
from zoo.spec.reader import SpecReader
from zoo.spec.training import Training

FORMAT = 1
"""The value of the key ``zoo``: the format of specs."""


@dataclass(frozen=True, kw_only=True)
class SpecHeading:
    """Format, name and description of a spec."""

    zoo: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    name: Annotated[str, Field(pattern=FILE_NAME, max_length=MAX_NAME)]
    description: str = ""


class Sections:
    """A spec: a model, and how it is initialised, trained, evaluated and used.

    Args:
        zoo: version of the format.
        name: name of the model.
        description: a text for readers.
        model: the model.
        adapters: adapters of the model by name; with them, its own parameters are frozen.
        init: initialiser of the weights; default: that of each component.
        sampler: how tokens are generated.
        filters: changes of the logits before sampling.
        objective: the loss.
        metrics: what ``zoo eval`` computes.
        preprocessing: for each key of the model's batch a preprocessor, which converts texts,
            images, audio or labels; saved with the model.
        train: how the model is trained.
    """

    def __init__(
        self,
        *,
        heading: SpecHeading,
        model: Blueprint[Model],
        adapters: Mapping[str, Blueprint[Adapter]] = MappingProxyType({}),
        init: Blueprint[Initialiser] | None = None,
        sampler: Blueprint[Sampler] | None = None,
        filters: Sequence[Blueprint[Filter]] = (),
        objective: Blueprint[Objective] | None = None,
        metrics: Sequence[Blueprint[Metric]] = (),
        preprocessing: Mapping[str, Blueprint[Preprocessor]] = MappingProxyType({}),
        train: Blueprint[Training] | None = None,
    ) -> None:
        self.name = heading.name
        self.description = heading.description
        self.model = model
        self.adapters = adapters
        self.init = init
        self.sampler = sampler
        self.filters = filters
        self.objective = objective
        self.metrics = metrics
        self.preprocessing = preprocessing
        self.train = train


@dataclass(frozen=True)
class Spec:
    """A validated spec."""

    sections: Sections
    root: Blueprint[Sections]

    @property
    def name(self) -> str:
        return self.sections.name

    def resolve(self) -> dict[str, Any]:
        """Return the spec with all defaults written out and all names qualified.

        ``train`` and ``adapters`` are included only if they are set.
        """
        resolved = self.root.resolve()
        for optional in ("train", "adapters"):
            if not resolved[optional]:
                del resolved[optional]
        return resolved

    def model_only(self) -> Spec:
        """Return this spec with the sections ``model`` and ``adapters`` only."""
        heading = SpecHeading(zoo=FORMAT, name=self.name)
        model, adapters = self.sections.model, self.sections.adapters
        return replace(self, sections=Sections(heading=heading, model=model, adapters=adapters))

    def without_training(self) -> Spec:
        """Return this spec without the section ``train``, which is not part of a saved model."""
        root = replace(self.root, params={**self.root.params, "train": None})
        return Spec(_sections(root), root)

    def providers(self) -> list[dict[str, Any]]:
        """Return name, version, plugin and distribution of each component."""
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for blueprint in self.root.walk():
            entry = blueprint.entry
            if entry:
                rows[entry.kind, entry.reference] = describe_provider(entry)
        return [rows[key] for key in sorted(rows)]


@dataclass(frozen=True)
class Draft:
    """A spec, if it could be read, and the problems found."""

    spec: Spec | None
    problems: list[Problem]


def _sections(root: Blueprint[Sections]) -> Sections:
    return Sections(**constructor_arguments(Sections, root.params))


def load_spec(
    source: Source,
    *,
    overrides: Iterable[str] = (),
    registry: ComponentRegistry | None = None,
    importer: Importer | None = None,
) -> Spec:
    """Read and validate a spec; raise SpecError with all problems found.

    Args:
        importer: the importer that created the spec. If several plugins provide a name in it, the
            component of the importer's plugin is used, then that of its distribution.
    """
    draft = draft_spec(source, overrides=overrides, registry=registry, importer=importer)
    if draft.problems or draft.spec is None:
        raise SpecError(draft.problems)
    return draft.spec


def draft_spec(
    source: Source,
    *,
    overrides: Iterable[str] = (),
    registry: ComponentRegistry | None = None,
    importer: Importer | None = None,
) -> Draft:
    """Read a spec and collect its problems; a spec with only unknown keys can still be built."""
    registry = registry or default_registry()
    try:
        document = merge_source(source, overrides, registry)
    except SpecError as error:
        return Draft(None, error.problems)
    unsupported = _check_format(document)
    if unsupported:
        return Draft(None, [unsupported])
    owner = registry.owner_of(importer) if importer else None
    reader = SpecReader(document, registry, owner=owner)
    root = reader.part(Sections, document.data)
    problems = sort_problems(reader.problems)
    return Draft(Spec(_sections(root), root) if root else None, problems)


def sort_problems(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems of each file in the order of its lines."""
    files = list(dict.fromkeys(p.place.file if p.place else "" for p in problems))

    def order(problem: Problem) -> tuple[int, int, int]:
        place = problem.place or Place("")
        return files.index(place.file), place.line or 0, place.column or 0

    return sorted(problems, key=order)


def _check_format(document: Document) -> Problem | None:
    """Return the problem of a spec of another format, whose other keys are not known."""
    number = document.data.get("zoo") if isinstance(document.data, dict) else None
    if type(number) is not int or number not in range(10_000) or number == FORMAT:
        return None
    remedy = f"; upgrade {DISTRIBUTION}" if number > FORMAT else ""
    message = f"spec format {number} is not supported; this version reads format {FORMAT}{remedy}"
    return Problem(message, "zoo", document.place(("zoo",)))
