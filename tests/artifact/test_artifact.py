"""A saved model comes back bit for bit, with the spec and the lock to rebuild it."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from artifact_kit import REGISTRY, TIED, all_tensors, assert_same_bits
from safetensors.torch import load_file
from torch import Tensor

from zoo.artifact import load, named_tensors, read_header, save
from zoo.interfaces import Model
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
    """A whole, good file of the tied model."""
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
def test_a_shipped_model_comes_back_bit_for_bit(tmp_path: Path, name: str, dtype: str) -> None:
    model = compose(name, overrides=[*SMALL[name], *NARROW], dtype=dtype, seed=3, registry=REGISTRY)
    again = load(save(model, tmp_path / "m.safetensors"), registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(again))
    assert_same_bits({"logits": logits_of(model)}, {"logits": logits_of(again)})
    assert {t.dtype for t in again.parameters()} == {getattr(torch, dtype)}
    assert (again.spec, again.providers) == (model.spec, model.providers)


def test_another_process_reads_the_same_bits(tmp_path: Path) -> None:
    model = compose("bahdanau-reversal", seed=5, registry=REGISTRY)
    save(model, tmp_path / "m.safetensors")
    script = (
        "import torch, zoo; from safetensors.torch import save_file\n"
        "model = zoo.load('m.safetensors').eval()\n"
        "batch = model.example(2, 5, torch.Generator().manual_seed(1))\n"
        "with torch.no_grad(): logits = model(batch).logits.contiguous()\n"
        "save_file({**model.state_dict(), 'logits': logits}, 'seen')\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert_same_bits(
        {**model.state_dict(), "logits": logits_of(model)}, load_file(tmp_path / "seen")
    )


def test_odd_numbers_keep_their_bits(tmp_path: Path) -> None:
    model = compose(TIED, registry=REGISTRY)
    odd = torch.tensor([float("nan"), -0.0, float("-inf"), 1e-45])
    with torch.no_grad():
        model.read.weight[0] = odd
        model.read.weight[1] = torch.tensor(-4194305, dtype=torch.int32).view(torch.float32)
    again = load(save(model, tmp_path / "m.safetensors"), registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(again))


def test_what_parts_share_is_saved_once_and_still_shared_after_loading(file: Path) -> None:
    assert read_header(file).tensors == {"read.weight": ("F32", (11, 4)), "seen": ("I64", (3,))}
    again = load(file, registry=REGISTRY)
    assert again.read.weight is again.speak.weight
    assert again.read.weight.requires_grad
    assert named_tensors(again).keys() == {"read.weight", "seen"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_computed_buffers_are_there_after_loading(tmp_path: Path, dtype: str) -> None:
    model = compose(TIED, dtype=dtype, registry=REGISTRY)
    again = load(save(model, tmp_path / "m.safetensors"), registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(again))
    assert_same_bits({"logits": logits_of(model)}, {"logits": logits_of(again)})


def test_buffers_that_overlap_in_memory_come_back(tmp_path: Path) -> None:
    model = compose({**TIED, "model": "kit-overlapping"}, registry=REGISTRY)
    again = load(save(model, tmp_path / "m.safetensors"), registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(again))


def test_loading_leaves_the_random_state_alone(file: Path) -> None:
    before = torch.get_rng_state()
    load(file, registry=REGISTRY)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_spec_inside_is_complete_and_the_lock_lists_every_component(tmp_path: Path) -> None:
    model = compose("bahdanau-reversal", registry=REGISTRY)
    header = read_header(save(model, tmp_path / "m.safetensors", provenance={"seed": 7}))
    spec = load_spec(header.spec, registry=REGISTRY)
    assert spec.resolve() == header.spec
    used = set()
    for blueprint in spec.root.walk():
        assert blueprint.params.keys() == {
            p.name for p in parameters(blueprint.cls) if not p.from_parent
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


def test_a_saved_file_is_as_readable_as_any_new_file(file: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_saving_through_a_link_replaces_what_it_points_to(file: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(file)
    save(compose(TIED, seed=9, registry=REGISTRY), tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    expected = compose(TIED, seed=9, registry=REGISTRY)
    assert_same_bits(all_tensors(load(file, registry=REGISTRY)), all_tensors(expected))
