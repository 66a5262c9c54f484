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
        shipped:                            # optional: trained weights in a file of a package
          file: weights/my-translator.safetensors     # relative to this file, or in a package
          sha256: "..."
          bytes: 4000000
          dtype: bfloat16
          recipe: my-translator             # the recipe that trained and evaluated it
          data: [{name: multi30k, licence: CC BY 4.0, attribution: Authors, url: "https://..."}]
        results:                            # optional
          - {metric: bleu, value: 28.4, dataset: Multi30k, split: test}
          - {metric: wer, label: phoneme error rate, value: 0.05, dataset: CMUdict, split: test}

Every problem has a line number, as in specs.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from zoo.errors import Problem, RegistryError, SpecError, ZooWarning, suggest
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.document import read_file
from zoo.spec.reader import SpecReader

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


CATALOGUE_FILE = "registry.yaml"


@dataclass(frozen=True)
class CatalogueEntry:
    """One model of a catalogue."""

    name: str
    spec: str
    paper: str
    licence: str
    weights: Weights | None
    shipped: Shipped | None
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
        """Name, paper, licence, repository, 'shipped' and results, in lower case."""
        measured = (f"{r.metric} {r.name} {r.dataset} {r.task or ''}" for r in self.results)
        where = [self.weights.hub] if self.weights else []
        where += ["shipped"] if self.shipped else []
        return " ".join((self.name, self.paper, self.licence, *where, *measured)).casefold()

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "spec": self.spec,
            "paper": self.paper,
            "licence": self.licence,
            "weights": vars(self.weights) if self.weights else None,
            "shipped": self.shipped.as_json() if self.shipped else None,
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
        """Return the model of a name: that of the built-in catalogue, or the only one."""
        found = [model for model in self.models if model.name == name]
        if len(found) == 1:
            return found[0]
        own = [model for model in found if model.file == builtin_file()]
        if own:
            others = " and ".join(str(model.file) for model in found if model is not own[0])
            warnings.warn(
                f"'{name}' is the model of the zoo; {others} also lists this name: load that model "
                "by its repository, hub:ORG/NAME, or by the path of its file",
                ZooWarning,
                stacklevel=2,
            )
            return own[0]
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
        """Return the weights of a model on the Hub, or raise RegistryError."""
        model = self.get(name)
        if model.weights is None and model.shipped is not None:
            raise RegistryError(
                f"the weights of '{name}' are shipped in a file, not on the Hub: there is nothing "
                f"to download, and a revision cannot be chosen; load it with zoo.load('{name}')"
            )
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
    root = reader.part(CatalogueFile, document.data)
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
    weights, shipped = row.get("weights"), row.get("shipped")
    return CatalogueEntry(
        row["name"],
        row["spec"],
        row["paper"],
        row["licence"],
        Weights(**weights.params) if weights else None,
        shipped.build() if shipped else None,
        tuple(Result(**result.params) for result in row.get("results", ())),
        file,
    )
