"""Artifacts of older components and other releases: migration, warnings and errors."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
import torch
from artifact_kit import REGISTRY, TIED, Tied, all_tensors, assert_same_bits, rewrite
from plugin_kit import Site, scorer
from pydantic import Field
from torch import Tensor, nn

from zoo.artifact import load, read_header, save, verify
from zoo.errors import ArtifactError, ZooWarning
from zoo.interfaces import Component, Embedding, Model, Outputs
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.composition import compose


class Tokens(Embedding):
    """Base class of the embeddings below."""

    def example(self, batch: int, length: int, generator: Any = None) -> Tensor:
        return torch.randint(0, 4, (batch, length), generator=generator)

    def mask(self, inputs: Tensor) -> Tensor:
        return torch.ones_like(inputs, dtype=torch.bool)


class Table(Tokens):
    """Embedding, version 1."""

    name: ClassVar[str] = "kit-table"

    def __init__(self, *, size: int = 11, width: int = 4) -> None:
        super().__init__()
        self.dim, self.vocab = width, size
        self.w = nn.Parameter(torch.randn(width, size))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.w.t()[tokens]


class TableTwo(Tokens):
    """Version 2: `size` was renamed to `vocab`, and the table was transposed."""

    name: ClassVar[str] = "kit-table"
    version: ClassVar[int] = 2

    def __init__(self, *, vocab: int, width: int = 4) -> None:
        super().__init__()
        self.dim, self.vocab = width, vocab
        self.table = nn.Parameter(torch.randn(vocab, width))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.table[tokens]

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        params["vocab"] = params.pop("size")
        return params, {"table": tensors["w"].t()}


class TableThree(TableTwo):
    """Version 3: with a scale."""

    version: ClassVar[int] = 3

    def __init__(self, *, vocab: int, width: int = 4, scale: float) -> None:
        super().__init__(vocab=vocab, width=width)
        self.scale = scale

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens) * self.scale

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            return super().migrate(version, params, tensors)
        return {**params, "scale": 0.5}, {"table": tensors["table"] * 2}


class Stack(Model):
    """Sum of several embeddings with a linear output."""

    name: ClassVar[str] = "kit-stack"

    def __init__(self, *, table: Blueprint[Embedding], layers: Annotated[int, Field(ge=1)] = 2):
        super().__init__()
        self.tables = nn.ModuleList(table.build() for _ in range(layers))
        self.out = nn.Linear(4, 11)

    def forward(self, batch: Any) -> Outputs:
        tokens = batch["source"]
        logits = self.out(sum(table(tokens) for table in self.tables))
        return Outputs(logits, tokens, torch.ones_like(tokens, dtype=torch.bool))

    def example(self, batch: int, length: int, generator: Any = None) -> dict[str, Tensor]:
        return {"source": torch.randint(0, 4, (batch, length), generator=generator)}


class StackTwo(Stack):
    """Version 2: the submodule `tables` was renamed to `levels`."""

    version: ClassVar[int] = 2

    def __init__(self, *, table: Blueprint[Embedding], layers: Annotated[int, Field(ge=1)] = 2):
        super().__init__(table=table, layers=layers)
        self.levels = self.tables
        del self.tables

    def forward(self, batch: Any) -> Outputs:
        tokens = batch["source"]
        logits = self.out(sum(table(tokens) for table in self.levels))
        return Outputs(logits, tokens, torch.ones_like(tokens, dtype=torch.bool))

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return params, {n.replace("tables.", "levels."): t for n, t in tensors.items()}


def registry(*components: type[Component]) -> ComponentRegistry:
    return ComponentRegistry.from_environment({"ZOO_PLUGINS": "none"}).with_components(
        components, plugin="kit"
    )


OLD = registry(Stack, Table)
SPEC = {"zoo": 1, "name": "kit", "model": {"type": "kit-stack", "table": "kit-table"}}


def logits(model: Model) -> Tensor:
    with torch.no_grad():
        return model.eval()({"source": torch.arange(6).reshape(2, 3)}).logits


@pytest.fixture
def old(tmp_path: Path) -> tuple[Path, Model]:
    """An artifact of version 1, and its model."""
    model = compose(SPEC, registry=OLD)
    return save(model, tmp_path / "old.safetensors"), model


@pytest.mark.parametrize(
    ("newer", "table"),
    [
        ((Stack, TableTwo), {"type": "kit:kit-table", "vocab": 11, "width": 4}),
        ((Stack, TableThree), {"type": "kit:kit-table", "vocab": 11, "width": 4, "scale": 0.5}),
        ((StackTwo, TableTwo), {"type": "kit:kit-table", "vocab": 11, "width": 4}),
        ((StackTwo, TableThree), {"type": "kit:kit-table", "vocab": 11, "width": 4, "scale": 0.5}),
    ],
    ids=["1 to 2", "1 to 2 to 3", "within a newer parent", "both"],
)
def test_older_artifact_is_migrated_step_by_step(
    old: tuple[Path, Model], tmp_path: Path, newer: Any, table: dict[str, Any]
) -> None:
    file, model = old
    again = load(file, verify=True, registry=registry(*newer))
    assert again.spec is not None
    assert again.spec["model"]["table"] == table
    torch.testing.assert_close(logits(again), logits(model))
    assert verify(file, registry=registry(*newer)).ok
    saved = save(again, tmp_path / "new.safetensors")
    assert {row["version"] for row in read_header(saved).providers} == {c.version for c in newer}
    assert_same_bits(all_tensors(load(saved, registry=registry(*newer))), all_tensors(again))


def test_shards_are_migrated(tmp_path: Path) -> None:
    model = compose(SPEC, registry=OLD)
    folder = save(model, tmp_path / "old", shard_bytes=200)
    again = load(folder, registry=registry(StackTwo, TableThree))
    torch.testing.assert_close(logits(again), logits(model))


class WithoutMigration(Table):
    """Version 2 without a migration."""

    version: ClassVar[int] = 2


class RaisingMigration(TableTwo):
    @classmethod
    def migrate(cls, version: int, params: Any, tensors: Any) -> Any:
        return params, {"table": tensors["missing"]}


class IncompleteMigration(TableTwo):
    @classmethod
    def migrate(cls, version: int, params: Any, tensors: Any) -> Any:
        return {"vocab": params["size"]}, {}


class NoneMigration(TableTwo):
    @classmethod
    def migrate(cls, version: int, params: Any, tensors: Any) -> Any:
        return None


@pytest.mark.parametrize(
    ("newer", "message"),
    [
        (WithoutMigration, "has version 2, which cannot migrate from 1; install"),
        (
            RaisingMigration,
            "'kit-table' at model.table could not be migrated from version 1 to 2: K",
        ),
        (IncompleteMigration, "missing: tables.0.table [11, 4]"),
        (NoneMigration, "could not be migrated from version 1 to 2: TypeError"),
    ],
)
def test_failed_migration_raises(
    old: tuple[Path, Model], newer: type[Component], message: str
) -> None:
    with pytest.raises(ArtifactError) as caught:
        load(old[0], registry=registry(Stack, newer))
    assert str(old[0]) in str(caught.value)
    assert message in str(caught.value)


def test_artifact_of_a_newer_component_raises(tmp_path: Path) -> None:
    model = compose(
        {**SPEC, "model": {"type": "kit-stack", "table": {"type": "kit-table", "vocab": 11}}},
        registry=registry(Stack, TableTwo),
    )
    file = save(model, tmp_path / "m")
    with pytest.raises(ArtifactError, match=r"version 2 of embedding.*has version 1; install"):
        load(file, registry=OLD)


class TableRenamed(Table):
    """Version 2: `size` was renamed to `vocab`; the tensors are the same."""

    version: ClassVar[int] = 2

    def __init__(self, *, vocab: int, width: int = 4) -> None:
        super().__init__(size=vocab, width=width)

    @classmethod
    def migrate(cls, version: int, params: Any, tensors: Any) -> Any:
        params["vocab"] = params.pop("size")
        return params, tensors


def test_format_1_migrates_parameters_but_not_tensors(old: tuple[Path, Model]) -> None:
    rewrite(old[0], zoo="1", **dict.fromkeys(("hashes", "digest", "probe", "places")))
    for components in ((Stack, Table), (Stack, TableRenamed)):
        model = load(old[0], registry=registry(*components))
        assert_same_bits(all_tensors(model), all_tensors(old[1]))
    with pytest.raises(ArtifactError, match=r"model\.table .*format 1 does not store module names"):
        load(old[0], registry=registry(Stack, TableTwo))


def test_migration_may_add_components_that_are_not_in_the_old_providers(tmp_path: Path) -> None:
    class Deeper(Tied):
        """Version 2 of the tied model, with an embedding."""

        version: ClassVar[int] = 2

        def __init__(self, *, vocab: int, dim: int, table: Blueprint[Embedding]) -> None:
            super().__init__(vocab=vocab, dim=dim)
            self.more = table.build()

        @classmethod
        def migrate(cls, version: int, params: Any, tensors: Any) -> Any:
            return {**params, "table": "kit-table"}, {**tensors, "more.w": torch.zeros(4, 11)}

    file = save(compose(TIED, registry=REGISTRY), tmp_path / "m")
    assert load(file, registry=registry(Deeper, Table)).more.w.sum() == 0


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site", monkeypatch)


@pytest.fixture
def released(tmp_path: Path, site: Site) -> Callable[[str, str], tuple[Path, ComponentRegistry]]:
    """Save a file with release 1.2 of a plugin, then install another release."""

    def released(version: str, source: str) -> tuple[Path, ComponentRegistry]:
        site.add("kit-scorers", scorer("kit-mine"), point="mine", version="1.2")
        overrides = ["model.decoder.attention.scorer=kit-mine"]
        model = compose("bahdanau-reversal", overrides=overrides, registry=site.registry())
        file = save(model, tmp_path / "m.safetensors")
        shutil.rmtree(site.folder / "kit_scorers-1.2.dist-info")
        site.add("kit-scorers", source, point="mine", version=version)
        return file, site.registry()

    return released


def test_another_release_with_the_same_component_versions_warns(
    released: Callable[[str, str], tuple[Path, ComponentRegistry]],
) -> None:
    file, installed = released("1.3", scorer("kit-mine"))
    message = r"was saved with kit-scorers 1\.2 \(installed: kit-scorers 1\.3\)"
    with pytest.warns(ZooWarning, match=message) as caught:
        load(file, registry=installed)
    assert len(caught) == 1


def test_another_release_with_another_component_version_names_what_to_install(
    released: Callable[[str, str], tuple[Path, ComponentRegistry]],
) -> None:
    newer = scorer("kit-mine").replace("    def __init__", "    version = 2\n\n    def __init__", 1)
    file, installed = released("2.0", newer)
    with pytest.raises(ArtifactError) as caught:
        load(file, registry=installed)
    assert "version 1 of scorer 'kit-mine'" in str(caught.value)
    assert "distribution kit-scorers 2.0 has version 2" in str(caught.value)
    assert "pip install 'kit-scorers==1.2'" in str(caught.value)


def test_component_paths_list_spec_paths_and_module_names() -> None:
    model = compose(SPEC, registry=OLD)
    assert [(p["path"], p["kind"], p["at"]) for p in model.component_paths] == [
        ("model", "model", [""]),
        ("model.table", "embedding", ["tables.0", "tables.1"]),
    ]
