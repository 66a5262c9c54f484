"""The model catalogue, read from `registry.yaml` and other files of the same format.

::

    zoo: 1
    models:
      - name: my-translator
        spec: specs/my-translator.yaml      # relative to this file, or the name of a shipped spec
        paper: Authors, year, title, venue
        licence: Apache-2.0
        weights:                            # optional: trained weights
          hub: org/my-translator
          revision: 0123456789abcdef0123456789abcdef01234567
          sha256: "..."                     # optional: sha256 of model.safetensors, or of `file`
        results:                            # optional
          - {metric: bleu, value: 28.4, dataset: Multi30k, split: test}

The signatures of the classes are the schema, as for specs, so every problem has a line number.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from zoo.errors import Problem, RegistryError, SpecError, suggest
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.document import read_file
from zoo.spec.reader import SpecReader

CATALOGUE_FILE = "registry.yaml"

NonEmptyText = Annotated[str, Field(min_length=1, max_length=1_000)]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Published weights: repository, commit, and sha256 of the file."""

    hub: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*$")]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    file: Annotated[str, Field(pattern=r"^[\w-]+(\.[\w-]+)*$")] = "model.safetensors"


@dataclass(frozen=True, kw_only=True)
class Result:
    """One evaluation result."""

    metric: NonEmptyText
    value: float
    dataset: NonEmptyText
    split: NonEmptyText | None = None
    task: NonEmptyText | None = None
    source: NonEmptyText | None = None


@dataclass(frozen=True, kw_only=True)
class _ModelRow:
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=96)]
    spec: NonEmptyText
    paper: NonEmptyText
    licence: NonEmptyText
    weights: Blueprint[Weights] | None = None
    results: Sequence[Blueprint[Result]] = ()


@dataclass(frozen=True, kw_only=True)
class _CatalogueFile:
    zoo: Annotated[int, Field(ge=1, le=1)]
    models: Sequence[Blueprint[_ModelRow]]


@dataclass(frozen=True)
class CatalogueEntry:
    """One model of a catalogue."""

    name: str
    spec: str
    paper: str
    licence: str
    weights: Weights | None
    results: tuple[Result, ...]
    file: Path

    def spec_path(self, registry: ComponentRegistry | None = None) -> Path:
        """Return the path of the spec: relative to the catalogue, or a shipped spec."""
        relative = self.file.parent / self.spec
        if relative.is_file():
            return relative
        return (registry or default_registry()).spec(Path(self.spec).stem)

    @property
    def search_text(self) -> str:
        """Name, paper, licence, repository and results, in lower case."""
        measured = (f"{r.metric} {r.dataset} {r.task or ''}" for r in self.results)
        hub = self.weights.hub if self.weights else ""
        return " ".join((self.name, self.paper, self.licence, hub, *measured)).casefold()

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "spec": self.spec,
            "paper": self.paper,
            "licence": self.licence,
            "weights": vars(self.weights) if self.weights else None,
            "results": [vars(result) for result in self.results],
            "catalogue": str(self.file),
        }


@dataclass(frozen=True)
class Catalogue:
    """The models of one or more catalogue files."""

    models: Sequence[CatalogueEntry]
    problems: Sequence[str] = ()
    """Messages about invalid catalogues of plugins, which are skipped."""

    def get(self, name: str) -> CatalogueEntry:
        found = [model for model in self.models if model.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            files = " and ".join(str(model.file) for model in found)
            raise RegistryError(f"'{name}' is listed in {files}; use its repository name instead")
        tail = suggest(name, (model.name for model in self.models), list_command="zoo catalogue")
        if name in default_registry().specs:
            tail = f"; it is a spec: 'zoo compose {name} -o model.safetensors' builds a model"
        if self.problems:
            tail += f"; invalid catalogues: {'; '.join(self.problems)}"
        raise RegistryError(f"no file or catalogue entry named '{name}'{tail}")

    def weights(self, name: str) -> Weights:
        """Return the published weights of a model, or raise RegistryError."""
        model = self.get(name)
        if model.weights is None:
            raise RegistryError(
                f"the catalogue has no weights for '{name}'; 'zoo compose {name} -o "
                f"{name}.safetensors' creates the model with random weights"
            )
        return model.weights

    def search(self, words: Iterable[str]) -> list[CatalogueEntry]:
        """Return the models whose name, paper, licence or results contain every word."""
        folded = [word.casefold() for word in words]
        return [m for m in self.models if all(word in m.search_text for word in folded)]


def load_catalogue(
    extra_files: Sequence[str | os.PathLike[str]] = (), *, registry: ComponentRegistry | None = None
) -> Catalogue:
    """Read the built-in catalogue, the catalogues of plugins, and further files."""
    registry = registry or default_registry()
    models, problems = read_catalogue(builtin_file(), registry), []
    for plugin in registry.plugins:
        for path in plugin.catalogues:
            try:
                models += read_catalogue(path, registry)
            except SpecError as error:
                problems.append(f"plugin '{plugin.name}' ({plugin.distribution}): {error}")
    for path in map(Path, extra_files):
        models += read_catalogue(path, registry)
    return Catalogue(models, problems)


def builtin_file() -> Path:
    """Return the path of `registry.yaml`, in the installed package or in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / CATALOGUE_FILE
    return installed if installed.is_file() else package.parent / CATALOGUE_FILE


def read_catalogue(path: Path, registry: ComponentRegistry | None = None) -> list[CatalogueEntry]:
    """Read one catalogue file. Raise SpecError with every problem in it."""
    document = read_file(path, "a catalogue file")
    reader = SpecReader(document, registry or default_registry())
    root = reader.part(_CatalogueFile, document.data)
    problems = list(reader.problems)
    models = (
        [] if root is None else [_parse_entry(row.params, path) for row in root.params["models"]]
    )
    first: dict[str, int] = {}
    for index, model in enumerate(models):
        if first.setdefault(model.name, index) != index:
            message = f"'{model.name}' is listed twice"
            key_path = ("models", index, "name")
            problems.append(Problem(message, f"models[{index}].name", document.place(key_path)))
    if problems:
        raise SpecError(problems)
    return models


def _parse_entry(row: dict[str, Any], file: Path) -> CatalogueEntry:
    weights = row.get("weights")
    return CatalogueEntry(
        row["name"],
        row["spec"],
        row["paper"],
        row["licence"],
        Weights(**weights.params) if weights else None,
        tuple(Result(**result.params) for result in row.get("results", ())),
        file,
    )
