"""Blocks that are captured as CUDA graphs, against the same model without accelerations; relative
errors below 1e-4 in float32."""

from functools import partial

import pytest
import torch
from kits.thread_kit import run_in_threads

import zoo
from zoo.plugin import Mask
from zoo_fast.transformer.captured_blocks import CapturedEncoderBlocks, _join, _split


def make_batch(model, items=2, length=5):
    batch = model.example(items, length, torch.Generator().manual_seed(0))
    return {name: tensor.cuda() for name, tensor in batch.items()}


def make_models(spec="transformer-tiny"):
    torch.manual_seed(0)
    fast = zoo.accelerate(zoo.compose(spec, device="cuda").eval())
    plain = zoo.compose(spec, device="cuda").eval()
    plain.load_state_dict(fast.state_dict())
    return fast, plain


@torch.no_grad()
def logits(model, batch, calls=4):
    """Return the logits of several calls; the third one is captured."""
    return [model(batch).logits for _ in range(calls)]


@pytest.mark.gpu
def test_replays_equal_the_plain_model():
    fast, plain = make_models()
    for items, length in ((2, 5), (3, 7), (2, 5)):
        batch = make_batch(fast, items, length)
        (expected,) = logits(plain, batch, 1)
        for found in logits(fast, batch):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    with torch.inference_mode():
        found = fast(batch).logits
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(logits(fast, batch, 1)[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
def test_changed_weights_settings_and_modes_are_not_ignored():
    fast, plain = make_models()
    batch = make_batch(fast)
    before = logits(fast, batch)[-1]
    changes = (
        lambda model: model.encoder.blocks[0].attention.value.weight.data.mul_(3),
        lambda model: setattr(model.decoder.blocks[0], "window", 1),
        lambda model: setattr(model.encoder.blocks[0].attention.scorers.first, "scale", 3.0),
        lambda model: setattr(model.encoder.blocks[0].feed_forward, "activation", "silu"),
    )
    for change in changes:
        for model in (fast, plain):
            change(model)
        found, expected = logits(fast, batch)[-1], logits(plain, batch, 1)[0]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        assert not torch.allclose(found, before, atol=1e-3)
        before = found
    fast(batch).logits.sum().backward()
    assert fast.encoder.blocks[0].attention_norm.weight.grad.any()


@pytest.mark.gpu
@torch.no_grad()
def test_monte_carlo_dropout_is_not_captured():
    model = make_models()[0]
    batch = make_batch(model)
    expected = logits(model, batch)[-1]
    dropouts = [part for part in model.modules() if isinstance(part, torch.nn.Dropout)]
    for dropout in dropouts:
        dropout.p = 0.5
        dropout.train()
    state = torch.cuda.get_rng_state()
    first, second = logits(model, batch, 2)
    assert not torch.equal(first, second)
    torch.cuda.set_rng_state(state)
    assert torch.equal(logits(model, batch, 1)[0], first)
    for dropout in dropouts:
        dropout.eval()
    torch.testing.assert_close(logits(model, batch)[-1], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
def test_threads_do_not_share_their_inputs():
    fast, plain = make_models()
    batches = [make_batch(fast, 2, 5) for _ in range(4)]
    for index, batch in enumerate(batches):
        batch["source"] = batch["source"].roll(index, dims=1)
    expected = [logits(plain, batch, 1)[0] for batch in batches]
    logits(fast, batches[0])
    found = run_in_threads([partial(logits, fast, batch, 1) for batch in batches], times=50)
    for results, value in zip(found, expected, strict=True):
        for [result] in results:
            torch.testing.assert_close(result, value, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
def test_a_longer_batch_does_not_change_the_positions_of_shorter_ones():
    fast, plain = make_models("stories260k")
    short, long = make_batch(fast, 2, 5), make_batch(fast, 1, 400)
    (expected,) = logits(plain, short, 1)
    logits(fast, short)
    logits(fast, long, 1)
    filled = [torch.full((64, 16), 1e3, device="cuda") for _ in range(2000)]  # freed memory
    torch.testing.assert_close(logits(fast, short, 1)[0], expected, rtol=1e-4, atol=1e-4)
    assert len(filled) == 2000


def test_masks_are_split_and_joined():
    mask = Mask(causal=True, keys=torch.ones(1, 2, dtype=torch.bool), window=3)
    tensors, settings = _split(mask)
    assert set(tensors) == {"keys"}
    joined = _join({"x": torch.zeros(1), "mask.keys": tensors["keys"]}, settings)
    assert (joined.causal, joined.window, joined.offset) == (True, 3, 0)
    assert joined.keys is mask.keys
    hash(settings)


def test_other_devices_and_training_use_the_other_paths():
    encoder = zoo.compose("transformer-tiny").encoder
    captured = CapturedEncoderBlocks()
    reason = "the device is 'cpu', not 'cuda'"
    assert captured.why_not(encoder, torch.device("cpu")) == reason
    reason = "the module is in training mode"
    assert captured.why_not(encoder.train(), torch.device("cuda")) == reason
