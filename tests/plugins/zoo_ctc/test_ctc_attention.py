from typing import Any

import pytest
import torch

import zoo
from zoo import SpecError
from zoo_ctc.ctc_greedy import CtcGreedy
from zoo_ctc.ctc_prefix_beam import CtcPrefixBeam
from zoo_sampling.greedy import Greedy

PARTS = {
    "source": {"type": "token", "vocab": 9, "dim": 4},
    "encoder": {"type": "gru", "hidden": 3, "bidirectional": True},
    "target": {"type": "token", "vocab": 7, "dim": 5},
    "decoder": {
        "type": "attentive-rnn",
        "hidden": 4,
        "readout": 3,
        "attention": {"scorer": {"type": "additive", "hidden": 3}, "align": "soft"},
    },
}


def compose(kind: str = "ctc-attention", **changes: Any) -> zoo.Model:
    model = {"type": kind, **PARTS} | changes
    return zoo.compose({"zoo": 1, "name": "test", "model": model}).eval()


@pytest.fixture
def ctc_and_seq2seq():
    """A model and a seq2seq model with the same weights."""
    model, plain = compose(), compose("seq2seq")
    weights = {k: v for k, v in model.state_dict().items() if not k.startswith("ctc.")}
    plain.load_state_dict(weights)
    return model, plain


BATCH = {
    "source": torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]),
    "target": torch.tensor([[1, 3, 4, 2], [1, 5, 2, 0]]),
}


def test_decoder_outputs_match_seq2seq(ctc_and_seq2seq):
    model, plain = ctc_and_seq2seq
    outputs, expected = model(BATCH), plain(BATCH)
    assert torch.equal(outputs.logits, expected.logits)
    assert torch.equal(outputs.targets, expected.targets)
    assert torch.equal(outputs.mask, expected.mask)
    decoded = model.generate(BATCH, Greedy(), max_length=5)
    assert torch.equal(decoded.tokens, plain.generate(BATCH, Greedy(), max_length=5).tokens)


def test_ctc_targets_exclude_bos_and_eos():
    model = compose()
    part = model(BATCH).auxiliary["ctc"]
    states = model.encode(BATCH["source"]).states
    torch.testing.assert_close(part.logits, states @ model.ctc.weight.T + model.ctc.bias)
    assert part.mask.tolist() == [[True] * 4, [True, True, False, False]]
    labels = [
        row[valid].tolist() for row, valid in zip(part.targets, part.target_mask, strict=True)
    ]
    assert labels == [[3, 4], [5]]


@pytest.mark.parametrize("sampler", [CtcGreedy(), CtcPrefixBeam(width=3)], ids=lambda s: s.name)
def test_frame_samplers_decode_the_ctc_head(sampler):
    model = compose()
    with torch.no_grad():
        model.ctc.weight.zero_()
        model.ctc.bias.copy_(torch.tensor([0, 0, 0, 0, 9, 0, 0]))
    outputs = model.generate(BATCH, sampler, max_length=5)
    assert [row[0][row[0] != 0].tolist() for row in outputs.tokens] == [[4], [4]]


def test_align_uses_the_ctc_head():
    alignment = compose().align(BATCH)
    assert [k for k in alignment.labels[1, :2].tolist() if k] in ([5], [5, 5])
    assert alignment.spans.shape == (2, 3, 2)


def test_hard_attention_returns_samples():
    attention = {"scorer": {"type": "additive", "hidden": 3}, "align": "hard"}
    model = compose(decoder=PARTS["decoder"] | {"attention": attention}).train()
    outputs = model(BATCH)
    assert outputs.samples is not None
    assert set(outputs.auxiliary) == {"ctc"}


def test_an_example_has_labels_between_bos_and_eos():
    model = compose()
    target = model.example(30, 6, torch.Generator().manual_seed(0))["target"]
    assert (target[:, 0] == 1).all()
    assert (target[:, -1] == 2).all()
    assert set(target[:, 1:-1].flatten().tolist()) == {3, 4, 5, 6}


def test_a_vocabulary_without_labels_raises():
    with pytest.raises(SpecError, match=r"vocab \(3\).*padding"):
        compose(target={"type": "token", "vocab": 3, "dim": 5})


def test_weight_names():
    names = {k.split(".")[0] for k in compose().state_dict()}
    assert names == {"source", "encoder", "decoder", "ctc"}
