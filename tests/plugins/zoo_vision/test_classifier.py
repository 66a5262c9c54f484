from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import zoo
from zoo import SpecError
from zoo_sampling.greedy import Greedy

ENCODER = {
    "type": "transformer",
    "layers": 2,
    "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
    "feed_forward": {"hidden": 12, "activation": "gelu"},
    "norm": {"place": "pre"},
}
GRID = {"type": "grid", "vocab": 4, "dim": 8, "rows": 3, "columns": 4}


def compose(**changes: Any) -> zoo.Model:
    model = {
        "type": "classifier",
        "source": {"type": "patches", "size": 2, "dim": 8},
        "encoder": ENCODER,
        "classes": 3,
    }
    return zoo.compose({"zoo": 1, "name": "test", "model": model | changes})


@pytest.mark.parametrize("read", ["first", "summary"])
def test_a_model_of_known_weights(read):
    model = compose(
        source={"type": "grid", "vocab": 2, "dim": 2, "rows": 1, "columns": 4},
        encoder={
            "type": "transformer",
            "layers": 1,
            "attention": {"scorer": "scaled-dot", "align": "soft", "project": "qkv"},
            "feed_forward": {"hidden": 1},
            "norm": {"eps": 1e-12},
        },
        classes=2,
        read=read,
    ).double()
    # With all else zero, attention and feed-forward add nothing to what the norms make: of a
    # cell (3, 1), which is symbol 0, (1, -1), and of (1, 5) (-1, 1); then the last norm's (2, 4).
    state = {name: torch.zeros_like(weight) for name, weight in model.state_dict().items()}
    state["source.table.weight"] += torch.tensor([[3.0, 1.0], [1.0, 5.0]])
    state["encoder.blocks.0.attention_norm.weight"] += 1
    state["encoder.blocks.0.feed_forward_norm.weight"] += torch.tensor([2.0, 4.0])
    state["out.weight"] += torch.tensor([[3.0, 0.0], [1.0, 0.5]])
    state["out.bias"] += torch.tensor([0.25, 0.0])
    model.load_state_dict(state)

    outputs = model({"source": torch.tensor([[[0, 1, 0, 0]]]), "target": torch.tensor([1])})

    # The first state is (2, -4); the mean of three such and a (-2, 4) is (1, -2).
    x, y = (2.0, -4.0) if read == "first" else (1.0, -2.0)
    expected = torch.tensor([[[3 * x + 0.25, x + 0.5 * y]]], dtype=torch.float64)
    torch.testing.assert_close(outputs.logits, expected, rtol=0, atol=1e-9)
    assert outputs.targets.tolist() == [[1]]
    assert outputs.mask.tolist() == [[True]]


@pytest.mark.parametrize("read", ["first", "summary"])
def test_it_equals_torchs_encoder_over_torchs_patches(read):
    model = compose(read=read).double()
    layer = nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, "gelu", batch_first=True, norm_first=True, dtype=torch.float64
    )
    other = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    with torch.no_grad():
        for block, one in zip(model.encoder.blocks, other.layers, strict=True):
            attentions = [getattr(block.attention, name) for name in ("query", "key", "value")]
            one.self_attn.in_proj_weight.copy_(torch.cat([look.weight for look in attentions]))
            one.self_attn.in_proj_bias.copy_(torch.cat([look.bias for look in attentions]))
            one.self_attn.out_proj.load_state_dict(block.attention.out.state_dict())
            one.linear1.load_state_dict(block.feed_forward.up.state_dict())
            one.linear2.load_state_dict(block.feed_forward.down.state_dict())
    torch.manual_seed(0)
    images = torch.randn(2, 3, 4, 6, dtype=torch.float64)

    logits = model({"source": images, "target": torch.zeros(2, dtype=torch.long)}).logits

    source = model.source
    squares = F.conv2d(images, source.map.weight, source.map.bias, stride=2)
    vectors = torch.cat([source.whole.expand(2, 1, 8), squares.flatten(2).mT], dim=1)
    states = F.layer_norm(other(vectors), (8,))
    read_out = states[:, 0] if read == "first" else states.mean(dim=1)
    expected = F.linear(read_out, model.out.weight, model.out.bias)
    torch.testing.assert_close(logits[:, 0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("read", ["first", "summary"])
def test_a_recurrent_encoder_reads_sketches_as_well(read):
    encoder = {"type": "gru", "hidden": 3, "bidirectional": True}
    model = compose(source=GRID, encoder=encoder, read=read)

    outputs = model(model.example(2, 4, torch.Generator().manual_seed(0)))
    outputs.logits.square().sum().backward()

    assert outputs.logits.shape == (2, 1, 3)
    assert model.encoder.stack.layers[0][0].weight_ih.grad.abs().sum() > 0


def test_every_input_has_one_target_that_counts():
    model = compose(source=GRID)
    batch = model.example(50, 4, torch.Generator().manual_seed(0))

    outputs = model(batch)

    assert set(batch["target"].tolist()) == {0, 1, 2}
    assert torch.equal(outputs.targets[:, 0], batch["target"])
    assert outputs.mask.shape == (50, 1)
    assert outputs.mask.all()


def test_it_does_not_generate():
    model = compose()
    batch = model.example(1, 3)
    with pytest.raises(zoo.ZooError, match="model 'classifier' does not generate"):
        model.generate(batch, Greedy(), max_length=2)


def test_no_classes_are_refused():
    with pytest.raises(SpecError, match="classes"):
        compose(classes=0)


def test_its_weights_are_named():
    names = {k: tuple(v.shape) for k, v in compose(source=GRID).state_dict().items()}

    assert {k: v for k, v in names.items() if not k.startswith("encoder.")} == {
        "source.table.weight": (4, 8),
        "source.rows.weight": (3, 8),
        "source.columns.weight": (4, 8),
        "out.weight": (3, 8),
        "out.bias": (3,),
    }
