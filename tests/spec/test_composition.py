"""Composition: the check on the meta device, and building from a seed."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from training_kit import make_spec, write_files
from typer.testing import CliRunner

import zoo
from zoo.artifact import verify
from zoo.cli.main import app
from zoo.errors import SpecError, ZooError
from zoo.spec.composition import build_on_meta
from zoo.spec.spec import load_spec

SPEC = {
    "zoo": 1,
    "name": "tiny",
    "model": {
        "type": "seq2seq",
        "source": {"type": "token", "vocab": 16, "dim": 4},
        "encoder": {"type": "gru", "hidden": 8},
        "decoder": {
            "type": "attentive-rnn",
            "hidden": 16,
            "attention": {"scorer": "additive", "align": "soft"},
        },
    },
}


def same_weights(one, other) -> bool:
    pairs = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


def test_weights_depend_on_the_seed():
    assert same_weights(zoo.compose(SPEC, seed=3), zoo.compose(SPEC, seed=3))
    assert not same_weights(zoo.compose(SPEC, seed=3), zoo.compose(SPEC, seed=4))


def test_overrides_are_a_list():
    with pytest.raises(zoo.ZooError, match="overrides is 'init=normal'; expected a list"):
        zoo.compose(SPEC, overrides="init=normal")


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, "a", 0.5])
def test_an_invalid_seed_raises(seed):
    with pytest.raises(zoo.ZooError, match=r"seed is .*; expected an integer from"):
        zoo.compose(SPEC, seed=seed)


def test_weights_do_not_depend_on_the_global_random_state():
    first = zoo.compose(SPEC)
    torch.rand(7)
    assert same_weights(first, zoo.compose(SPEC))


def test_composing_and_checking_do_not_change_the_global_random_state():
    torch.manual_seed(1)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tobytes()
    zoo.compose(SPEC, seed=5)
    zoo.check(SPEC)
    after = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tobytes()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


@pytest.mark.gpu
def test_composing_does_not_change_the_random_state_of_the_gpu():
    torch.cuda.manual_seed(1)
    before = torch.cuda.get_rng_state()
    zoo.compose(SPEC, device="cuda", seed=5)
    assert torch.equal(before, torch.cuda.get_rng_state())


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (None, torch.float32),
        ("bfloat16", torch.bfloat16),
        ("float64", torch.float64),
        (torch.float16, torch.float16),
    ],
)
def test_a_model_has_the_requested_dtype(dtype, expected):
    model = zoo.compose(SPEC, dtype=dtype)
    assert {p.dtype for p in model.parameters()} == {expected}
    assert {p.device.type for p in model.parameters()} == {"cpu"}


@pytest.mark.parametrize("dtype", ["int8", "half", "", torch.int64, 3])
def test_an_unsupported_dtype_raises(dtype):
    with pytest.raises(ZooError, match="float32, bfloat16, float16, float64"):
        zoo.compose(SPEC, dtype=dtype)


@pytest.mark.parametrize("device", ["banana", "", "cpu:-1"])
def test_an_unknown_device_raises(device):
    with pytest.raises(ZooError, match=f"device '{device}'"):
        zoo.compose(SPEC, device=device)


def _run(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    raise done.exception


@pytest.mark.parametrize(
    "use",
    [
        lambda model, device: zoo.compose(SPEC, device=device),
        lambda model, device: zoo.load(model, device=device),
        lambda model, device: verify(model, device=device),
        lambda model, device: zoo.evaluate(model, {"type": "x"}, device=device),
        lambda model, device: zoo.train(make_spec(write_files(Path())), device=device),
        lambda model, device: _run("verify", model, "--device", device),
        lambda model, device: _run("eval", model, "--device", device),
        lambda model, device: _run("bench", "--device", device),
    ],
)
@pytest.mark.parametrize("device", ["gpu", "GPU:0"])
def test_gpu_is_not_a_device_and_cuda_is_suggested(use, device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = zoo.save(zoo.compose(SPEC), "model.safetensors")
    with pytest.raises(ZooError, match=f"device '{device}' is unknown; did you mean 'cuda'"):
        use(model, device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", torch.device("cuda")])
def test_a_cuda_device_that_is_not_available_raises(device):
    with pytest.raises(ZooError, match=r"device 'cuda.*no CUDA device"):
        zoo.compose(SPEC, device=device)


@pytest.mark.parametrize("device", ["xla", "vulkan", "hpu"])
def test_a_device_that_torch_was_not_built_for_raises(device):
    with pytest.raises(ZooError, match=f"device '{device}'"):
        zoo.compose(SPEC, device=device)


def test_overrides_change_the_model():
    model = zoo.compose(SPEC, overrides=["model.encoder.hidden=3", "name=other"])
    assert model.encoder.output_dim == 3
    assert model.spec["name"] == "other"
    with pytest.raises(SpecError, match=r"--set model\.encoder\.hidden=x"):
        zoo.compose(SPEC, overrides=["model.encoder.hidden=x"])


def test_a_model_has_its_resolved_spec_and_its_providers():
    model = zoo.compose(SPEC)
    spec = load_spec(SPEC)
    assert model.spec == spec.resolve()
    assert list(model.providers) == spec.providers()
    assert same_weights(zoo.compose(model.spec), model)


def test_a_check_builds_all_parts_on_the_meta_device():
    tree = build_on_meta(load_spec(SPEC))
    tensors = [*tree.part.parameters(), *tree.part.buffers()]
    assert tensors
    assert all(tensor.is_meta for tensor in tensors)


def test_a_model_larger_than_memory_can_be_checked():
    report = zoo.check(
        SPEC, overrides=["model.source={type: token, vocab: 1000000000, dim: 50000}"]
    )
    assert report.bytes > 100 * 2**40


def test_a_check_restores_the_default_device():
    zoo.check(SPEC)
    assert torch.zeros(1).device.type == "cpu"
    with pytest.raises(SpecError):
        zoo.check(SPEC, overrides=["model.decoder.attention.scorer=dot"])
    assert torch.zeros(1).device.type == "cpu"


def test_a_spec_with_an_unknown_key_is_still_built_and_checked():
    data = {**SPEC, "objective": {"type": "cross-entropy", "eps": 1}}
    with pytest.raises(SpecError) as caught:
        zoo.check(data, overrides=["model.bos=99"])
    assert [p.path for p in caught.value.problems] == ["objective.eps", "model"]


def test_a_composed_model_runs():
    model = zoo.compose(SPEC).eval()
    outputs = model(model.example(2, 5))
    assert outputs.logits.shape == (2, 6, 16)
    assert outputs.logits.isfinite().all()


def test_components_can_be_listed_by_kind():
    assert "additive" in {entry.name for entry in zoo.components("scorer")}
    assert {entry.kind for entry in zoo.components("scorer")} == {"scorer"}
    assert len(zoo.components()) > len(zoo.components("scorer"))
    with pytest.raises(ZooError, match="no kind named 'scorr'; did you mean 'scorer'"):
        zoo.components("scorr")
