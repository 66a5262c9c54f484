import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import zoo
from zoo import SpecError, recording

ENCODER = {
    "type": "transformer",
    "layers": 2,
    "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
    "feed_forward": {"hidden": 8, "activation": "gelu"},
    "position": {"type": "learned", "length": 6},
}
TOKENS = torch.tensor([[1, 4, 3, 6, 2], [1, 5, 0, 0, 0], [1, 3, 3, 0, 0]])
MASK = TOKENS != 0


def compose(**changes: Any) -> zoo.Model:
    model = {
        "type": "masked-lm",
        "source": {"type": "token", "vocab": 7, "dim": 4},
        "encoder": ENCODER,
    }
    return zoo.compose({"zoo": 1, "name": "test", "model": model | changes})


def test_a_head_of_known_weights():
    model = compose(
        source={"type": "token", "vocab": 3, "dim": 2},
        encoder={"type": "rnn", "hidden": 1},
        eps=1e-12,
    ).double()
    state = {name: torch.zeros_like(weight) for name, weight in model.state_dict().items()}
    state["encoder.stack.layers.0.0.bias_ih"] += 0.5
    state["transform.weight"] += torch.tensor([[2.0], [-1.0]])
    state["transform.bias"] += torch.tensor([0.0, 1.0])
    state["norm.weight"] += torch.tensor([2.0, 3.0])
    state["norm.bias"] += torch.tensor([0.5, 0.0])
    state["source.table.weight"] += torch.tensor([[0.0, 0.0], [1.0, 4.0], [-1.0, 0.0]])
    state["bias"] += torch.tensor([0.25, 0.0, 1.0])
    model.load_state_dict(state)

    outputs = model({"source": torch.tensor([[1]]), "target": torch.tensor([[2]])})

    # h = tanh(0.5) = 0.46: gelu(2h) > gelu(1 - h), so the LayerNorm of the two is (1, -1).
    assert 2 * math.tanh(0.5) > 1 - math.tanh(0.5) > 0
    normed = (2 * 1 + 0.5, 3 * -1)
    expected = [0.25, normed[0] + 4 * normed[1], -normed[0] + 1]
    expected = torch.tensor([[expected]], dtype=torch.float64)
    torch.testing.assert_close(outputs.logits, expected, rtol=0, atol=1e-9)
    assert outputs.targets.tolist() == [[2]]


def test_a_head_without_biases():
    model = compose(bias=False, norm_bias=False, output_bias=False).eval()
    names = {name for name in model.state_dict() if not name.startswith(("source", "encoder"))}
    assert names == {"transform.weight", "norm.weight"}
    states = model.encode(TOKENS).states
    expected = model.norm(F.gelu(states @ model.transform.weight.T)) @ model.source.table.weight.T
    torch.testing.assert_close(model({"source": TOKENS, "target": TOKENS}).logits, expected)


def test_logits_match_torch_and_the_formula():
    model = compose(encoder={k: v for k, v in ENCODER.items() if k != "position"}).double()
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, "gelu", batch_first=True, dtype=torch.float64)
    other = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    with torch.no_grad():
        for block, one in zip(model.encoder.blocks, other.layers, strict=True):
            projections = [getattr(block.attention, name) for name in ("query", "key", "value")]
            one.self_attn.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
            one.self_attn.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
            one.self_attn.out_proj.load_state_dict(block.attention.out.state_dict())
            one.linear1.load_state_dict(block.feed_forward.up.state_dict())
            one.linear2.load_state_dict(block.feed_forward.down.state_dict())
        model.bias.normal_()
    table = model.source.table.weight

    logits = model({"source": TOKENS, "target": TOKENS}).logits

    states = other(table[TOKENS], src_key_padding_mask=~MASK)
    activated = F.gelu(F.linear(states, model.transform.weight, model.transform.bias))
    expected = F.layer_norm(activated, (4,), eps=1e-12) @ table.T + model.bias
    torch.testing.assert_close(logits[MASK], expected[MASK], rtol=0, atol=1e-10)


@pytest.mark.parametrize("reference", [True, False])
def test_more_padding_has_no_effect(reference):
    model = compose()
    longer = F.pad(TOKENS, (0, 1))

    def logits(tokens: torch.Tensor) -> torch.Tensor:
        if not reference:
            return model({"source": tokens, "target": tokens}).logits
        with recording(model):
            return model({"source": tokens, "target": tokens}).logits

    torch.testing.assert_close(logits(longer)[:, :5][MASK], logits(TOKENS)[MASK])


def test_every_token_depends_on_both_sides():
    model = compose()
    changed = TOKENS.clone()
    changed[0, 2] = 5

    before = model({"source": TOKENS, "target": TOKENS}).logits
    after = model({"source": changed, "target": TOKENS}).logits

    assert (after[0] != before[0]).any(dim=-1).all()
    assert torch.equal(after[1:], before[1:])


def test_loss_mask_and_padding_are_combined():
    model = compose()
    loss_mask = torch.zeros_like(MASK)
    loss_mask[:, 1:4] = True
    batch = {"source": TOKENS, "target": TOKENS}

    assert torch.equal(model(batch).mask, MASK)
    assert torch.equal(model({**batch, "loss_mask": loss_mask}).mask, MASK & loss_mask)


def test_the_table_gets_gradients_as_output_matrix():
    model = compose()
    batch = model.example(2, 4, torch.Generator().manual_seed(0))

    model(batch).logits.square().sum().backward()

    # A token that is not an input is still among the predicted ones.
    unused = [token for token in range(1, 7) if token not in batch["source"]]
    assert unused
    assert model.source.table.weight.grad[unused].abs().sum() > 0
    assert batch["source"].shape == batch["target"].shape == (2, 4)


def test_an_embedding_without_a_vocabulary_raises():
    with pytest.raises(SpecError, match=r"'patches'.*vocabulary"):
        compose(source={"type": "patches", "size": 2, "dim": 4})


def test_reset_parameters_sets_the_bias_to_zero():
    model = compose()
    torch.nn.init.ones_(model.bias)

    model.reset_parameters()

    assert torch.count_nonzero(model.bias) == 0


def test_parameter_names():
    names = {k: tuple(v.shape) for k, v in compose().state_dict().items()}

    assert {k: v for k, v in names.items() if not k.startswith("encoder.")} == {
        "bias": (7,),
        "source.table.weight": (7, 4),
        "transform.weight": (4, 4),
        "transform.bias": (4,),
        "norm.weight": (4,),
        "norm.bias": (4,),
    }
    assert names["encoder.position.table.weight"] == (6, 4)
