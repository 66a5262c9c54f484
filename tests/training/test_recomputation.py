"""Gradient checkpointing: results are those without it."""

import pytest
import torch
from torch import nn
from training_kit import assert_equal_weights, make_spec, read_log, set_dropout

import zoo
from zoo.training.recomputation import recompute_parts

SPECS = ["transformer-tiny", "gpt2-tiny", "bert-tiny", "llama-tiny", "vit-tiny", "wav2vec2-tiny"]


def _gradients(spec, patterns, *, accelerated=False):
    model = zoo.compose(spec)
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.1
    recompute_parts(model, patterns)
    if accelerated:
        zoo.accelerate(model)
    batch = model.example(3, 5, torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    loss = zoo.objective(model)(model(batch))
    loss.backward()
    return [loss.detach(), *(weight.grad for weight in model.parameters())]


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_and_dropout_do_not_change(spec):
    expected = _gradients(spec, False)
    for accelerated in (False, True):
        for found, tensor in zip(
            _gradients(spec, True, accelerated=accelerated), expected, strict=True
        ):
            torch.testing.assert_close(found, tensor, rtol=0, atol=1e-6 if accelerated else 0)


def _saved_elements(model):
    """Return the number of elements that a forward pass keeps for the backward pass."""
    kept = []

    def save(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        model(model.example(4, 16))
    return sum(kept)


def test_only_the_inputs_of_blocks_are_kept():
    sizes = []
    for patterns in (False, True, ["decoder.blocks.{0..0}"]):
        model = zoo.compose("gpt2-tiny")
        recompute_parts(model, patterns)
        sizes.append(_saved_elements(model))
    whole, blocks, one = sizes
    assert blocks < one < whole
    assert blocks < whole / 2


def test_a_training_has_the_same_results(files, tmp_path):
    spec = make_spec(files, steps=4, log={"every": 1})
    spec = set_dropout(spec, 0.1)
    for name, setting in (("plain", False), ("blocks", True), ("names", ["encoder.blocks"])):
        train = {**spec["train"], "checkpointing": setting}
        zoo.train({**spec, "train": train}, output=tmp_path / name, device="cpu")
    for name in ("blocks", "names"):
        assert [e.get("loss") for e in read_log(tmp_path / name)] == pytest.approx(
            [e.get("loss") for e in read_log(tmp_path / "plain")], abs=1e-6
        )
    assert_equal_weights(*(tmp_path / n / "model.safetensors" for n in ("blocks", "names")))


def test_what_cannot_be_recomputed_is_rejected(files, tmp_path):
    with pytest.raises(zoo.ZooError, match="no blocks that it calls once"):
        recompute_parts(zoo.compose("rnn-lm"), True)
    spec = make_spec(files, compile=True, checkpointing=True)
    with pytest.raises(zoo.SpecError, match="cannot be used with 'compile'"):
        zoo.train(spec, output=tmp_path / "run", device="cpu")
