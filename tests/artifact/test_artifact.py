"""A loaded model is bit-identical to the saved one, with its spec and providers."""

from __future__ import annotations

import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from artifact_kit import REGISTRY, TIED, Tied, all_tensors, assert_same_bits
from safetensors.torch import load_file
from torch import Tensor, nn

from zoo.artifact import load, named_tensors, read_header, save
from zoo.interfaces import Model, Outputs
from zoo.interfaces.signature import parameters
from zoo.spec.composition import compose
from zoo.spec.spec import load_spec

SMALL = {
    "bahdanau-reversal": [],
    "luong-2015": ["model.source={vocab: 12, dim: 8}"],
    "sutskever-2014": ["model.source={vocab: 12, dim: 8}", "model.target={vocab: 13, dim: 8}"],
}
NARROW = ["model.encoder.hidden=8", "model.decoder.hidden=8"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A valid file of the tied model."""
    return save(compose(TIED, registry=REGISTRY), tmp_path / "model.safetensors")


def logits_of(model: Model) -> Tensor:
    with torch.no_grad():
        return model.eval()(model.example(2, 5, torch.Generator().manual_seed(1))).logits


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("bahdanau-reversal", "float32"),
        ("bahdanau-reversal", "bfloat16"),
        ("luong-2015", "float32"),
        ("sutskever-2014", "bfloat16"),
    ],
)
def test_shipped_models_are_bit_identical_after_loading(
    tmp_path: Path, name: str, dtype: str
) -> None:
    model = compose(name, overrides=[*SMALL[name], *NARROW], dtype=dtype, seed=3, registry=REGISTRY)
    again = load(save(model, tmp_path / "m.safetensors"), registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(again))
    assert_same_bits({"logits": logits_of(model)}, {"logits": logits_of(again)})
    assert {t.dtype for t in again.parameters()} == {getattr(torch, dtype)}
    assert (again.spec, again.providers) == (model.spec, model.providers)


def test_another_process_loads_identical_bits(tmp_path: Path) -> None:
    model = compose("bahdanau-reversal", seed=5, registry=REGISTRY)
    save(model, tmp_path / "m.safetensors")
    script = (
        "import sys, torch, zoo; from safetensors.torch import save_file\n"
        "model = zoo.load('m.safetensors').eval()\n"
        "assert 'torch._dynamo' not in sys.modules  # takes as long to import as torch\n"
        "batch = model.example(2, 5, torch.Generator().manual_seed(1))\n"
        "with torch.no_grad(): logits = model(batch).logits.contiguous()\n"
        "save_file({**model.state_dict(), 'logits': logits}, 'loaded')\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    loaded = load_file(tmp_path / "loaded")
    torch.testing.assert_close(loaded.pop("logits"), logits_of(model))
    assert_same_bits(dict(model.state_dict()), loaded)


def test_special_float_values_keep_their_bits(tmp_path: Path) -> None:
    model = compose(TIED, registry=REGISTRY)
    special = torch.tensor([float("nan"), -0.0, float("-inf"), 1e-45])
    with torch.no_grad():
        model.read.weight[0] = special
        model.read.weight[1] = torch.tensor(-4194305, dtype=torch.int32).view(torch.float32)
    again = load(save(model, tmp_path / "m.safetensors"), registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(again))


def test_shared_tensors_are_saved_once_and_stay_shared(file: Path) -> None:
    assert read_header(file).tensors == {"read.weight": ("F32", (11, 4)), "seen": ("I64", (3,))}
    again = load(file, registry=REGISTRY)
    assert again.read.weight is again.speak.weight
    assert again.read.weight.requires_grad
    assert named_tensors(again).keys() == {"read.weight", "seen"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_non_persistent_buffers_are_computed_when_loading(tmp_path: Path, dtype: str) -> None:
    model = compose(TIED, dtype=dtype, registry=REGISTRY)
    again = load(save(model, tmp_path / "m.safetensors"), registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(again))
    assert_same_bits({"logits": logits_of(model)}, {"logits": logits_of(again)})


def test_overlapping_buffers_are_saved(tmp_path: Path) -> None:
    model = compose({**TIED, "model": "kit-overlapping"}, registry=REGISTRY)
    again = load(save(model, tmp_path / "m.safetensors"), registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(again))


def test_loading_does_not_change_the_random_state(file: Path) -> None:
    before = torch.get_rng_state()
    load(file, registry=REGISTRY)
    assert torch.equal(torch.get_rng_state(), before)


def test_stored_spec_is_resolved_and_providers_list_every_component(tmp_path: Path) -> None:
    model = compose("bahdanau-reversal", registry=REGISTRY)
    header = read_header(save(model, tmp_path / "m.safetensors", provenance={"seed": 7}))
    spec = load_spec(header.spec, registry=REGISTRY)
    assert spec.resolve() == header.spec
    used = set()
    for blueprint in spec.root.walk():
        assert blueprint.params.keys() == {
            p.name
            for p in parameters(blueprint.cls)
            if not p.from_parent and p.name not in ("train", "adapters")
        }
        if blueprint.entry:
            used.add((blueprint.entry.kind, blueprint.entry.reference))
    assert used == {(row["kind"], f"{row['plugin']}:{row['name']}") for row in header.providers}
    assert ("scorer", "bahdanau:additive") in used
    assert len(header.providers) == len(used) == 10
    for row in header.providers:
        entry = REGISTRY.get(row["kind"], f"{row['plugin']}:{row['name']}")
        assert row["version"] == entry.cls.version
        assert row["distribution"] == "attention-zoo"
        assert row["distribution_version"] == entry.distribution_version
    assert header.provenance["seed"] == 7
    assert header.provenance["torch"] == torch.__version__


class WithDropout(Tied):
    """The tied model with dropout on its logits."""

    name: ClassVar[str] = "kit-dropout"

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, batch: Any) -> Outputs:
        outputs = super().forward(batch)
        return replace(outputs, logits=self.drop(outputs.logits))


def test_loaded_models_are_in_evaluation_mode_and_composed_ones_in_training_mode(
    tmp_path: Path,
) -> None:
    registry = REGISTRY.with_components([WithDropout], plugin="kit")
    model = compose({**TIED, "model": "kit-dropout"}, registry=registry)
    assert all(module.training for module in model.modules())
    file = save(model, tmp_path / "m.safetensors")
    assert all(module.training for module in model.modules())
    again = load(file, registry=registry)
    assert not any(module.training for module in again.modules())
    batch = model.example(2, 5)
    with torch.no_grad():
        assert (model(batch).logits == 0).any()
        assert torch.equal(again(batch).logits, model.eval()(batch).logits)


def test_from_pretrained_returns_a_model_in_evaluation_mode(tmp_path: Path) -> None:
    folder = compose("bahdanau-reversal").save_pretrained(tmp_path / "folder")
    assert not any(module.training for module in Model.from_pretrained(folder).modules())


def test_saved_file_has_default_permissions(file: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_saving_through_a_symbolic_link_replaces_its_target(file: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(file)
    save(compose(TIED, seed=9, registry=REGISTRY), tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    expected = compose(TIED, seed=9, registry=REGISTRY)
    assert_same_bits(all_tensors(load(file, registry=REGISTRY)), all_tensors(expected))
