"""Small CTC specs with short inputs and in bfloat16."""

import pytest
import torch

import zoo
from zoo_ctc.ctc_prefix_beam import CtcPrefixBeam

TINY = ["deepspeech-ctc-tiny", "transformer-ctc-tiny", "ctc-attention-tiny"]


@pytest.mark.parametrize("name", TINY)
def test_an_item_shorter_than_a_window_has_no_labels_and_finite_gradients(name):
    model = zoo.compose(name)
    batch = model.example(3, 8, torch.Generator().manual_seed(0))
    batch["source"][1, 40:] = 0.0
    zoo.load_spec(name).sections.objective.build()(model(batch)).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    outputs = model.eval().generate(batch, CtcPrefixBeam(width=2), max_length=4)
    assert outputs.tokens[1, 0].tolist() == [0] * outputs.tokens.shape[2]
    assert outputs.scores[1, 0] == 0


@pytest.mark.parametrize("name", TINY)
def test_bfloat16_is_close_to_float32(name):
    model = zoo.compose(name).eval()
    batch = model.example(4, 8, torch.Generator().manual_seed(0))
    expected = model(batch).logits
    batch["source"] = batch["source"].bfloat16()
    actual = model.bfloat16()(batch).logits
    assert actual.dtype is torch.bfloat16
    assert (actual.float() - expected).abs().max() <= 0.05 * expected.abs().max()
