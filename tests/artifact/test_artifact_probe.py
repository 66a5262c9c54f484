"""The probe detects models whose outputs have changed."""

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
from zoo.errors import ArtifactError
from zoo.interfaces import Model, Outputs
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.composition import compose


class Stateful(Tied):
    """A model whose forward changes its state: dropout, batch norm and updated buffers."""

    name: ClassVar[str] = "kit-stateful"
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


REGISTRY = REGISTRY.with_components([Stateful], plugin="kit")
STATEFUL = {**TIED, "model": "kit-stateful"}


def stateful(seed: int = 0) -> Model:
    return compose(STATEFUL, registry=REGISTRY, seed=seed)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return save(stateful(), tmp_path / "m.safetensors")


def statuses(file: Path, registry: ComponentRegistry = REGISTRY) -> dict[str, str]:
    return {check.name: check.status for check in verify(file, registry=registry).checks}


def test_valid_file_passes_every_check(file: Path) -> None:
    found = verify(file, registry=REGISTRY)
    assert found.ok
    assert statuses(file) == dict.fromkeys(("header", "hashes", "spec", "probe"), "ok")
    assert json.loads(json.dumps(found.as_json()))["ok"] is True


def test_saving_does_not_change_the_model(tmp_path: Path) -> None:
    model = stateful().train()
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


def test_probe_does_not_call_hooks(tmp_path: Path) -> None:
    model, calls = stateful(), []
    model.register_forward_hook(lambda *_: calls.append(1))
    save(model, tmp_path / "m")
    assert calls == []


@pytest.mark.parametrize("size", [1e-3, 1.0])
def test_changed_implementation_is_detected(
    file: Path, monkeypatch: pytest.MonkeyPatch, size: float
) -> None:
    monkeypatch.setattr(Stateful, "forward_as", lambda self, x: x + size * x.roll(1, -1))
    assert statuses(file) == {"header": "ok", "hashes": "ok", "spec": "ok", "probe": "failed"}
    detail = verify(file, registry=REGISTRY).checks[-1].detail
    assert "logits differs by " in detail


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda self, x: x[:, :, :-1], "logits has shape [2, 5, 10], expected [2, 5, 11]"),
        (
            lambda self, x: x.masked_fill(x > 0, float("nan")),
            "logits is not finite at the same positions",
        ),
        (
            lambda self, x: x / 0 if x.isnan().any() else 1 // 0,
            "does not run on the stored input: ZeroDivisionError",
        ),
    ],
    ids=["shape", "nan", "raises"],
)
def test_detail_names_the_change(
    file: Path, monkeypatch: pytest.MonkeyPatch, change: Any, message: str
) -> None:
    monkeypatch.setattr(Stateful, "forward_as", change)
    assert message in verify(file, registry=REGISTRY).checks[-1].detail


def test_rounding_differences_are_tolerated(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stateful, "forward_as", lambda self, x: (x.double() * (1 + 1e-6)).float())
    assert statuses(file)["probe"] == "ok"


def test_changes_between_samples_are_detected_by_the_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    model = compose({**TIED, "model": {"type": "kit-tied", "vocab": 500}}, registry=REGISTRY)
    probe = record_probe(model)
    every = probe["outputs"]["logits"]["every"]
    assert every > 1
    assert compare_probe(model, probe) == []
    forward = Tied.forward

    def changed_forward(self: Any, batch: Any) -> Outputs:
        outputs = forward(self, batch)
        flat = outputs.logits.flatten()
        flat[1::every] += 1
        return Outputs(flat.view_as(outputs.logits), outputs.targets, outputs.mask)

    monkeypatch.setattr(Tied, "forward", changed_forward)
    assert "has norm" in compare_probe(model, probe)[0]


def test_model_whose_example_does_not_run_is_saved_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, *_: Any) -> Any:
        raise RuntimeError("no example\ntoday")

    monkeypatch.setattr(Stateful, "example", broken)
    model = compose_without_check(monkeypatch)
    file = save(model, tmp_path / "m")
    reason = "the model does not run on its example: RuntimeError: no example"
    assert read_header(file).probe == {"skipped": reason}
    check = verify(file, registry=REGISTRY).checks[-1]
    assert (check.status, check.detail) == ("skipped", reason)


@pytest.mark.parametrize("shard_bytes", [None, 100])
def test_model_that_does_not_run_does_not_replace_a_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard_bytes: int | None
) -> None:
    target = save(stateful(), tmp_path / "m", shard_bytes=shard_bytes)
    files = [target] if target.is_file() else sorted(target.iterdir())
    before = [file.read_bytes() for file in files]

    def broken(self: Any, x: Tensor) -> Tensor:
        raise RuntimeError("a part is missing")

    model = stateful(seed=1)
    monkeypatch.setattr(Stateful, "forward_as", broken)
    with pytest.raises(ArtifactError, match=r"m was not replaced: .*: a part is missing; save the"):
        save(model, target, shard_bytes=shard_bytes)
    assert [file.read_bytes() for file in files] == before
    assert sorted(tmp_path.iterdir()) == [target]
    save(model, target, shard_bytes=shard_bytes, probe=False)
    monkeypatch.undo()
    assert torch.equal(load(target, registry=REGISTRY).read.weight, model.read.weight)


@pytest.mark.parametrize("tolerance", [1e9, float("nan"), float("inf")])
@pytest.mark.parametrize("norm", [None, float("nan")])
def test_a_file_cannot_raise_its_own_tolerance(
    file: Path, monkeypatch: pytest.MonkeyPatch, tolerance: float, norm: float | None
) -> None:
    probe = read_header(file).probe or {}
    for row in probe["outputs"].values():
        row["tolerance"] = tolerance
        row["norm"] = row["norm"] if norm is None else norm
    rewrite(file, probe=json.dumps(probe))
    assert statuses(file)["probe"] == ("ok" if norm is None else "failed")
    monkeypatch.setattr(Stateful, "forward_as", lambda self, x: x + 0.01)
    assert statuses(file)["probe"] == "failed"


def test_a_file_cannot_have_an_empty_probe(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(file, registry=REGISTRY)
    monkeypatch.setattr(Stateful, "example", lambda *_: {"source": torch.zeros(0, 5).long()})
    probe = record_probe(model)
    rewrite(file, probe=json.dumps(probe))
    assert (
        "the outputs of the stored input are empty"
        in verify(file, registry=REGISTRY).checks[-1].detail
    )


def compose_without_check(monkeypatch: pytest.MonkeyPatch) -> Model:
    """Compose without running the example, which would raise."""
    import zoo.spec.composition

    monkeypatch.setattr(zoo.spec.composition, "check_example", lambda *_: None)
    return stateful()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("MAX_WEIGHT_BYTES", 10, "the weights have"),
        ("MAX_INPUT_BYTES", 3, "the smallest example has more than 3 bytes"),
    ],
)
def test_large_models_and_inputs_are_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int, message: str
) -> None:
    monkeypatch.setattr(f"zoo.artifact.probe.{name}", value)
    probe = read_header(save(stateful(), tmp_path / "m")).probe
    assert message in (probe or {})["skipped"]


def test_probe_is_optional(tmp_path: Path) -> None:
    file = save(stateful(), tmp_path / "m", probe=False)
    assert read_header(file).probe == {"skipped": "saved with probe=False"}
    assert verify(file, registry=REGISTRY).ok


def test_inputs_are_stored_not_regenerated(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = read_header(file).probe or {}
    stored = torch.frombuffer(
        bytearray(base64.b64decode(probe["inputs"]["source"]["data"])), dtype=torch.int64
    )
    example = stateful().example(2, 5, torch.Generator().manual_seed(0))["source"]
    assert stored.tolist() == example.flatten().tolist()
    monkeypatch.setattr(Stateful, "example", lambda *_: 1 / 0)
    assert statuses(file)["probe"] == "ok"


@pytest.mark.parametrize(
    "probe",
    ['{"inputs": {}, "outputs": {}}', '{"inputs": {"source": {"shape": 1}}, "outputs": {}}'],
)
def test_invalid_probe_fails(file: Path, probe: str) -> None:
    rewrite(file, probe=probe)
    assert statuses(file)["probe"] == "failed"


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed:UserWarning")  # CPUs without bfloat16
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_probe_of_every_dtype_passes(tmp_path: Path, dtype: str) -> None:
    model = compose("bahdanau-reversal", dtype=dtype)
    assert verify(save(model, tmp_path / "m")).checks[-1].status == "ok"


def test_format_1_loads_and_reports_absent_checks(file: Path) -> None:
    rewrite(file, zoo="1", **dict.fromkeys(("hashes", "digest", "probe", "places")))
    assert statuses(file) == {
        "header": "absent",
        "hashes": "absent",
        "spec": "ok",
        "probe": "absent",
    }
    assert verify(file, registry=REGISTRY).ok
    assert load(file, registry=REGISTRY).spec == stateful().spec


@pytest.mark.parametrize("shape", [[1, 125_000], [125_000, 1], [2**40, 0]])
def test_a_probe_that_is_larger_than_saved_ones_is_not_run(
    file: Path, monkeypatch: pytest.MonkeyPatch, shape: list[int]
) -> None:
    probe = read_header(file).probe or {}
    data = base64.b64encode(bytes(8 * shape[0] * shape[1])).decode()
    inputs = {"source": {"dtype": "I64", "shape": shape, "data": data}}
    rewrite(file, probe=json.dumps({**probe, "inputs": inputs}))
    monkeypatch.setattr(Stateful, "forward", lambda *_: pytest.fail("the model was run"))
    check = verify(file, registry=REGISTRY).checks[-1]
    assert check.status == "failed"
    assert "at most 10,000 are allowed" in check.detail
