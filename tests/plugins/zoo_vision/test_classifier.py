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


@pytest.mark.parametrize("pooling", ["first", "summary"])
def test_known_values(pooling):
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
        pooling=pooling,
    ).double()
    # With all other weights 0, attention and feed-forward add nothing. The norm maps the cell
    # (3, 1), token 0, to (1, -1) and (1, 5) to (-1, 1); the last norm scales them by (2, 4).
    state = {name: torch.zeros_like(weight) for name, weight in model.state_dict().items()}
    state["source.table.weight"] += torch.tensor([[3.0, 1.0], [1.0, 5.0]])
    state["encoder.blocks.0.attention_norm.weight"] += 1
    state["encoder.blocks.0.feed_forward_norm.weight"] += torch.tensor([2.0, 4.0])
    state["out.weight"] += torch.tensor([[3.0, 0.0], [1.0, 0.5]])
    state["out.bias"] += torch.tensor([0.25, 0.0])
    model.load_state_dict(state)

    outputs = model({"source": torch.tensor([[[0, 1, 0, 0]]]), "target": torch.tensor([1])})

    # The first state is (2, -4); the mean of three (2, -4) and one (-2, 4) is (1, -2).
    x, y = (2.0, -4.0) if pooling == "first" else (1.0, -2.0)
    expected = torch.tensor([[[3 * x + 0.25, x + 0.5 * y]]], dtype=torch.float64)
    torch.testing.assert_close(outputs.logits, expected, rtol=0, atol=1e-9)
    assert outputs.targets.tolist() == [[1]]
    assert outputs.mask.tolist() == [[True]]


def test_an_inner_layer_with_a_norm_and_without_biases():
    inner = {"activation": "gelu", "bias": False, "norm_eps": 0.25, "norm_bias": False}
    model = compose(inner=inner).double().eval()
    names = {name for name in model.state_dict() if name.startswith("inner")}
    assert names == {"inner.map.weight", "inner.norm.weight"}
    model.inner.map.weight.data = torch.eye(8, dtype=torch.float64)
    vector = torch.randn(2, 8, dtype=torch.float64)
    expected = F.layer_norm(F.gelu(vector), (8,), eps=0.25)
    torch.testing.assert_close(model.inner(vector), expected)


@pytest.mark.parametrize(
    ("activation", "f"), [("tanh", torch.tanh), ("relu", F.relu), ("gelu", F.gelu)]
)
def test_an_inner_layer_and_the_mean_of_valid_states(activation, f):
    inner = {"dim": 5, "activation": activation, "dropout": 0.5}
    source = {"type": "token", "vocab": 9, "dim": 8}
    model = compose(source=source, pooling="mean", inner=inner, dropout=0.5).eval()
    texts = torch.tensor([[3, 4, 5], [6, 7, 0]])

    logits = model({"source": texts, "target": torch.tensor([0, 2])}).logits

    for text, row in zip(texts, logits, strict=True):
        valid = text[text > 0][None]
        states = model.encoder(model.source(valid), model.source.mask(valid)).states[0]
        expected = model.out(f(model.inner.map(states.mean(dim=0))))
        torch.testing.assert_close(row[0], expected)


def test_dropout_is_before_the_inner_layer_and_before_the_output():
    model = compose(inner={"dropout": 0.5}, dropout=0.5)
    images = torch.randn(2, 3, 4, 4)
    vectors = []
    model.inner.map.register_forward_pre_hook(lambda _, inputs: vectors.append(inputs[0]))
    model.out.register_forward_pre_hook(lambda _, inputs: vectors.append(inputs[0]))

    model({"source": images, "target": torch.zeros(2, dtype=torch.long)})

    assert all(0 < (vector == 0).sum() < vector.numel() for vector in vectors)


def test_several_labels_for_each_item():
    model = compose(multi_label=True).eval()
    batch = model.example(4, 4, torch.Generator().manual_seed(0))

    outputs = model(batch)

    assert outputs.targets.shape == outputs.logits.shape == (4, 1, 3)
    assert set(batch["target"].flatten().tolist()) == {0.0, 1.0}
    assert model.output_schema().targets == "multi-label"
    with pytest.raises(SpecError, match=r"cross-entropy.*binary-cross-entropy"):
        zoo.check({**model.spec, "objective": "cross-entropy"})


@pytest.mark.parametrize("pooling", ["first", "summary"])
def test_matches_torch_encoder_over_patches(pooling):
    model = compose(pooling=pooling).double()
    layer = nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, "gelu", batch_first=True, norm_first=True, dtype=torch.float64
    )
    other = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    with torch.no_grad():
        for block, one in zip(model.encoder.blocks, other.layers, strict=True):
            projections = [getattr(block.attention, name) for name in ("query", "key", "value")]
            one.self_attn.in_proj_weight.copy_(torch.cat([linear.weight for linear in projections]))
            one.self_attn.in_proj_bias.copy_(torch.cat([linear.bias for linear in projections]))
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
    pooled = states[:, 0] if pooling == "first" else states.mean(dim=1)
    expected = F.linear(pooled, model.out.weight, model.out.bias)
    torch.testing.assert_close(logits[:, 0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("pooling", ["first", "summary"])
def test_grid_embedding_with_a_recurrent_encoder(pooling):
    encoder = {"type": "gru", "hidden": 3, "bidirectional": True}
    model = compose(source=GRID, encoder=encoder, pooling=pooling)

    outputs = model(model.example(2, 4, torch.Generator().manual_seed(0)))
    outputs.logits.square().sum().backward()

    assert outputs.logits.shape == (2, 1, 3)
    assert model.encoder.stack.layers[0][0].weight_ih.grad.abs().sum() > 0


def test_every_input_has_one_target():
    model = compose(source=GRID)
    batch = model.example(50, 4, torch.Generator().manual_seed(0))

    outputs = model(batch)

    assert set(batch["target"].tolist()) == {0, 1, 2}
    assert torch.equal(outputs.targets[:, 0], batch["target"])
    assert outputs.mask.shape == (50, 1)
    assert outputs.mask.all()


def test_generate_raises():
    model = compose()
    batch = model.example(1, 3)
    with pytest.raises(zoo.ZooError, match=r"'classifier' does not support generation"):
        model.generate(batch, Greedy(), max_length=2)


def test_zero_classes_raise():
    with pytest.raises(SpecError, match="classes"):
        compose(classes=0)


def test_weight_names_and_shapes():
    names = {k: tuple(v.shape) for k, v in compose(source=GRID).state_dict().items()}

    assert {k: v for k, v in names.items() if not k.startswith("encoder.")} == {
        "source.table.weight": (4, 8),
        "source.rows.weight": (3, 8),
        "source.columns.weight": (4, 8),
        "out.weight": (3, 8),
        "out.bias": (3,),
    }


def test_several_labels_of_an_item():
    overrides = ["model.multi_label=true", "metrics=[micro-f1]"]
    model = zoo.compose("vit-tiny", overrides=[*overrides, "objective=binary-cross-entropy"])
    outputs = model(model.example(2, 8))
    assert outputs.logits.shape == outputs.targets.shape == (2, 1, 5)
    loss = zoo.objective(model)(outputs)
    expected = torch.nn.BCEWithLogitsLoss()(outputs.logits, outputs.targets)
    torch.testing.assert_close(loss, expected)


@torch.no_grad()
def test_a_distilled_classifier_averages_the_logits_of_two_states():
    source = {"type": "patches", "size": 2, "dim": 8, "extra_tokens": 1}
    model = compose(source=source, distilled=True).eval()
    batch = model.example(2, 6, torch.Generator().manual_seed(0))

    logits = model(batch).logits[:, 0]

    states = model.encoder(model.source(batch["source"]), model.source.mask(batch["source"])).states
    expected = (model.out(states[:, 0]) + model.distilled_out(states[:, 1])) / 2
    torch.testing.assert_close(logits, expected)


@pytest.mark.parametrize("changes", [{"pooling": "mean"}, {"inner": {"activation": "tanh"}}])
def test_a_distilled_classifier_uses_the_first_states(changes):
    with pytest.raises(SpecError, match="distilled requires pooling 'first' and no inner layer"):
        compose(distilled=True, **changes)


@torch.no_grad()
def test_first_and_mean_are_concatenated():
    model = compose(pooling="first-mean").eval()
    batch = model.example(2, 6, torch.Generator().manual_seed(0))

    logits = model(batch).logits[:, 0]

    states = model.encoder(model.source(batch["source"]), model.source.mask(batch["source"])).states
    pooled = torch.cat([states[:, 0], states[:, 1:].mean(dim=1)], dim=-1)
    torch.testing.assert_close(logits, model.out(pooled))
