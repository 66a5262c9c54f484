"""Models load, generate and verify without the plugins of their objective and metrics."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from plugin_kit import Site

import zoo
from zoo.artifact import load, read_header, save, verify
from zoo.errors import ArtifactError, RegistryError, ZooError
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.composition import compose

SOURCE = '''
from typing import ClassVar
from zoo.plugin import Metric, Objective, hookimpl


class Loss(Objective):
    """Mean of the logits."""

    name: ClassVar[str] = "kit-loss"

    def __init__(self, *, scale: float = 1.0) -> None:
        super().__init__()

    def forward(self, outputs):
        return outputs.logits.mean()

    def reference(self, outputs):
        return float(outputs.logits.mean())


class Length(Metric):
    """Number of predictions."""

    name: ClassVar[str] = "kit-length"

    def __init__(self) -> None:
        self.count = 0

    def update(self, predictions, references): self.count += len(predictions)
    def merge(self, other): self.count += other.count
    def compute(self): return {"length": float(self.count)}
    def signature(self): return "length"
    def reference(self, predictions, references): return {"length": float(len(predictions))}
    def example(self, count, rng): return ["a"] * count, [["a"]] * count


@hookimpl
def zoo_components():
    return [Loss, Length]
'''
SPEC = {
    "zoo": 1,
    "name": "kit",
    "extends": "bahdanau-reversal",
    "objective": {"type": "kit-loss", "scale": 2.0},
    "metrics": ["accuracy", "kit-length"],
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(tmp_path / "site", monkeypatch)
    site.add("kit-training", SOURCE, point="training", version="1.2")
    return site


@pytest.fixture
def file(tmp_path: Path, site: Site) -> Path:
    """A model whose objective and a metric come from a plugin that is then uninstalled."""
    file = save(compose(SPEC, registry=site.registry(), seed=3), tmp_path / "m.safetensors")
    assert load(file, registry=site.registry()).spec == read_header(file).spec
    shutil.rmtree(site.folder / "kit_training-1.2.dist-info")
    return file


def test_model_loads_generates_and_verifies(file: Path, site: Site) -> None:
    registry = site.registry()
    model = load(file, registry=registry)
    expected = compose("bahdanau-reversal", registry=registry, seed=3)
    prompts = [[4, 5, 6]]
    assert zoo.generate(model, prompts) == zoo.generate(expected, prompts)
    report = verify(file, registry=registry)
    assert [check.status for check in report.checks] == ["ok"] * 4, report


def test_saving_again_keeps_spec_providers_and_identity(
    file: Path, site: Site, tmp_path: Path
) -> None:
    again = save(load(file, registry=site.registry()), tmp_path / "again.safetensors")
    before, after = read_header(file), read_header(again)
    assert after.spec == before.spec
    assert after.spec["objective"] == {"type": "training:kit-loss", "scale": 2.0}
    assert after.providers == before.providers
    assert after.component_paths == before.component_paths
    assert after.identity == before.identity


def test_directory_for_the_hub_can_be_saved(file: Path, site: Site, tmp_path: Path) -> None:
    folder = zoo.save_folder(load(file, registry=site.registry()), tmp_path / "folder")
    assert "kit-loss" in (folder / "README.md").read_text()
    assert "pip install attention-zoo kit-training" in (folder / "README.md").read_text()
    assert read_header(folder).identity == read_header(file).identity


@pytest.mark.parametrize(
    ("section", "name"), [("objective", "kit-loss"), ("metrics", "kit-length")]
)
def test_asking_for_a_missing_component_names_what_to_install(
    file: Path, site: Site, section: str, name: str
) -> None:
    model = load(file, registry=site.registry())
    build = {"objective": zoo.objective, "metrics": zoo.metrics}[section]
    with pytest.raises(RegistryError, match=rf"'{name}' of plugin 'training' .*kit-training==1\.2"):
        build(model)


def test_missing_metric_does_not_affect_the_objective(site: Site, tmp_path: Path) -> None:
    spec = {**SPEC, "objective": "cross-entropy"}
    file = save(compose(spec, registry=site.registry()), tmp_path / "m.safetensors")
    shutil.rmtree(site.folder / "kit_training-1.2.dist-info")
    model = load(file, registry=site.registry())
    assert zoo.objective(model).name == "cross-entropy"
    with pytest.raises(RegistryError, match="kit-length"):
        zoo.metrics(model)


def test_component_of_the_model_is_required(file: Path, site: Site) -> None:
    entries = [e for e in site.registry().entries if e.name != "additive"]
    with pytest.raises(ArtifactError, match=r"scorer 'additive' .*pip install 'attention-zoo=="):
        load(file, registry=ComponentRegistry(entries=entries))


def test_missing_sampler_is_required_to_generate_only(file: Path, site: Site) -> None:
    entries = [e for e in site.registry().entries if e.kind != "sampler"]
    registry = ComponentRegistry(entries=entries)
    model = load(file, registry=registry)
    assert verify(file, registry=registry).ok
    with pytest.raises(ZooError, match="sampler"):
        zoo.generate(model, [[4, 5, 6]], registry=registry)


def test_newer_objective_without_migration_is_not_required(tmp_path: Path, site: Site) -> None:
    file = save(compose(SPEC, registry=site.registry()), tmp_path / "m.safetensors")
    shutil.rmtree(site.folder / "kit_training-1.2.dist-info")
    newer = SOURCE.replace('= "kit-loss"\n', '= "kit-loss"\n    version: ClassVar[int] = 2\n')
    site.add("kit-training", newer, point="training", version="2.0")
    with pytest.warns(zoo.ZooWarning, match=r"kit-training 1\.2 \(installed: kit-training 2\.0\)"):
        model = load(file, registry=site.registry())
    assert model.spec == read_header(file).spec
