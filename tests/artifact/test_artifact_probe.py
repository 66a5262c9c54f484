"""The golden probe sees what hashes cannot: a model that answers otherwise than it did."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from artifact_kit import REGISTRY, TIED, Tied, rewrite
from torch import Tensor, nn

from zoo.artifact import load, read_header, save, verify
from zoo.artifact.probe import compare_probe, record_probe
from zoo.interfaces import Model, Outputs
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.composition import compose


class Moody(Tied):
    """Everything a run could disturb: dropout, a buffer that counts, draws, and inner modes."""

    name: ClassVar[str] = "kit-moody"
    forward_as: ClassVar[Callable[[Any, Tensor], Tensor]] = staticmethod(lambda self, x: x)

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("runs", torch.zeros(()))

    def forward(self, batch: Any) -> Outputs:
        self.runs += 1
        self.seen = self.seen + 1
        x = self.norm(self.drop(self.read(batch["source"])).transpose(1, 2)).transpose(1, 2)
        logits = type(self).forward_as(self, self.speak(x))
        return Outputs(logits, batch["source"], torch.ones_like(batch["source"]).bool())


REGISTRY = REGISTRY.with_components([Moody], plugin="kit")
MOODY = {**TIED, "model": "kit-moody"}


def moody(seed: int = 0) -> Model:
    return compose(MOODY, registry=REGISTRY, seed=seed)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return save(moody(), tmp_path / "m.safetensors")


def statuses(file: Path, registry: ComponentRegistry = REGISTRY) -> dict[str, str]:
    return {check.name: check.status for check in verify(file, registry=registry).checks}


def test_a_good_file_passes_every_check(file: Path) -> None:
    found = verify(file, registry=REGISTRY)
    assert found.ok
    assert statuses(file) == dict.fromkeys(("header", "hashes", "spec", "probe"), "ok")
    assert json.loads(json.dumps(found.as_json()))["ok"] is True


def test_saving_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    model = moody().train()
    model.norm.eval()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    buffers = {name: id(buffer) for name, buffer in model.named_buffers()}
    modes = [module.training for module in model.modules()]
    random = torch.get_rng_state()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first = read_header(save(model, tmp_path / "m")).probe
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)
    assert {name: id(buffer) for name, buffer in model.named_buffers()} == buffers
    assert all(torch.equal(model.state_dict()[name], state[name]) for name in state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert read_header(save(model, tmp_path / "m")).probe == first


def test_no_hook_hears_of_the_probe(tmp_path: Path) -> None:
    model, heard = moody(), []
    model.register_forward_hook(lambda *_: heard.append(1))
    save(model, tmp_path / "m")
    assert heard == []


@pytest.mark.parametrize("size", [1e-3, 1.0])
def test_code_that_changed_its_meaning_is_found(
    file: Path, monkeypatch: pytest.MonkeyPatch, size: float
) -> None:
    monkeypatch.setattr(Moody, "forward_as", lambda self, x: x + size * x.roll(1, -1))
    assert statuses(file) == {"header": "ok", "hashes": "ok", "spec": "ok", "probe": "failed"}
    detail = verify(file, registry=REGISTRY).checks[-1].detail
    assert detail.startswith("the model answers otherwise: logits differs by ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda self, x: x[:, :, :-1], "logits is [2, 5, 10], was [2, 5, 11]"),
        (lambda self, x: x.masked_fill(x > 0, float("nan")), "is not finite where it was"),
        (lambda self, x: x / 0 if x.isnan().any() else 1 // 0, "no longer runs on it"),
    ],
    ids=["shape", "nan", "raises"],
)
def test_what_changed_is_said(
    file: Path, monkeypatch: pytest.MonkeyPatch, change: Any, said: str
) -> None:
    monkeypatch.setattr(Moody, "forward_as", change)
    assert said in verify(file, registry=REGISTRY).checks[-1].detail


def test_other_ways_of_adding_up_are_not_drift(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moody, "forward_as", lambda self, x: (x.double() * (1 + 1e-6)).float())
    assert statuses(file)["probe"] == "ok"


def test_numbers_between_the_samples_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    model = compose({**TIED, "model": {"type": "kit-tied", "vocab": 500}}, registry=REGISTRY)
    probe = record_probe(model)
    every = probe["outputs"]["logits"]["every"]
    assert every > 1
    assert compare_probe(model, probe) == []
    forward = Tied.forward

    def bent(self: Any, batch: Any) -> Outputs:
        outputs = forward(self, batch)
        flat = outputs.logits.flatten()
        flat[1::every] += 1
        return Outputs(flat.view_as(outputs.logits), outputs.targets, outputs.mask)

    monkeypatch.setattr(Tied, "forward", bent)
    assert "has the norm" in compare_probe(model, probe)[0]


def test_a_model_that_cannot_run_its_example_is_saved_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, *_: Any) -> Any:
        raise RuntimeError("no example\ntoday")

    monkeypatch.setattr(Moody, "example", broken)
    model = moody_without_check(monkeypatch)
    file = save(model, tmp_path / "m")
    reason = "it does not run on its example: RuntimeError: no example"
    assert read_header(file).probe == {"skipped": reason}
    check = verify(file, registry=REGISTRY).checks[-1]
    assert (check.status, check.detail) == ("skipped", reason)


def moody_without_check(monkeypatch: pytest.MonkeyPatch) -> Model:
    """A model whose example is out of order, which composition would not let pass."""
    import zoo.spec.composition

    monkeypatch.setattr(zoo.spec.composition, "build_report", lambda *_: None)
    return moody()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MAX_WEIGHT_BYTES", 10, "too many to run"),
        ("MAX_INPUT_BYTES", 3, "no example of it is smaller"),
    ],
)
def test_what_would_cost_too_much_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int, said: str
) -> None:
    monkeypatch.setattr(f"zoo.artifact.probe.{name}", value)
    probe = read_header(save(moody(), tmp_path / "m")).probe
    assert said in (probe or {})["skipped"]


def test_the_probe_can_be_left_out(tmp_path: Path) -> None:
    file = save(moody(), tmp_path / "m", probe=False)
    assert read_header(file).probe == {"skipped": "not asked for"}
    assert verify(file, registry=REGISTRY).ok


def test_inputs_are_kept_so_no_generator_needs_to_repeat(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = read_header(file).probe or {}
    kept = torch.frombuffer(
        bytearray(base64.b64decode(probe["inputs"]["source"]["data"])), dtype=torch.int64
    )
    example = moody().example(2, 5, torch.Generator().manual_seed(0))["source"]
    assert kept.tolist() == example.flatten().tolist()
    monkeypatch.setattr(Moody, "example", lambda *_: 1 / 0)
    assert statuses(file)["probe"] == "ok"


@pytest.mark.parametrize(
    "probe",
    ['{"inputs": {}, "outputs": {}}', '{"inputs": {"source": {"shape": 1}}, "outputs": {}}'],
)
def test_a_forged_probe_fails_and_harms_nothing(file: Path, probe: str) -> None:
    rewrite(file, probe=probe)
    assert statuses(file)["probe"] == "failed"


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_every_precision_has_its_probe(tmp_path: Path, dtype: str) -> None:
    model = compose("bahdanau-reversal", dtype=dtype)
    assert verify(save(model, tmp_path / "m")).checks[-1].status == "ok"


def test_files_of_the_first_format_load_and_say_what_they_lack(file: Path) -> None:
    words = dict.fromkeys(("hashes", "digest", "probe", "places"))
    rewrite(file, zoo="1", **words)
    assert statuses(file) == {
        "header": "absent",
        "hashes": "absent",
        "spec": "ok",
        "probe": "absent",
    }
    assert verify(file, registry=REGISTRY).ok
    assert load(file, registry=REGISTRY).spec == moody().spec
