import pytest
import torch

import zoo
from zoo import SpecError
from zoo_transformer.layer_scale import LayerScale

ENCODER = {
    "type": "transformer",
    "layers": 2,
    "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
    "feed_forward": {"hidden": 12},
}


def compose(place, layer_scale):
    encoder = ENCODER | {"norm": {"place": place}, "layer_scale": layer_scale}
    model = {"type": "features", "source": {"type": "token", "vocab": 9, "dim": 8}}
    return zoo.compose({"zoo": 1, "name": "test", "model": model | {"encoder": encoder}}, seed=0)


def test_known_values():
    scale = LayerScale(2, 0.5)
    assert scale(torch.tensor([[2.0, 4.0]])).tolist() == [[1.0, 2.0]]
    scale.weight.data = torch.tensor([3.0, -1.0])
    assert scale(torch.tensor([[2.0, 4.0]])).tolist() == [[6.0, -4.0]]


@torch.no_grad()
@pytest.mark.parametrize("place", ["pre", "post"])
def test_a_scale_equals_scaled_output_layers(place):
    """The output layers of both sublayers, multiplied by the factors, give the same states."""
    scaled, plain = compose(place, 0.5), compose(place, None)
    for block in scaled.encoder.blocks:
        block.attention_scale.weight.normal_()
        block.feed_forward_scale.weight.normal_()
    state = {n: p for n, p in scaled.state_dict().items() if "_scale." not in n}
    plain.load_state_dict(state)
    for ours, theirs in zip(scaled.encoder.blocks, plain.encoder.blocks, strict=True):
        for layer, scale in (
            (theirs.attention.out, ours.attention_scale),
            (theirs.feed_forward.down, ours.feed_forward_scale),
        ):
            layer.weight.mul_(scale.weight[:, None])
            layer.bias.mul_(scale.weight)
    batch = scaled.example(2, 5, torch.Generator().manual_seed(0))
    torch.testing.assert_close(scaled(batch).logits, plain(batch).logits)


@pytest.mark.parametrize("place", ["output", "both"])
def test_norms_of_the_output_are_rejected(place):
    with pytest.raises(SpecError, match=f"place 'pre' or 'post', not '{place}'"):
        compose(place, 0.5)


@torch.no_grad()
def test_an_accelerated_model_has_the_same_outputs(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    model = compose("post", 0.5).eval()
    batch = model.example(2, 5, torch.Generator().manual_seed(0))
    expected = model(batch).logits
    accelerated = zoo.accelerate(model)
    torch.testing.assert_close(accelerated(batch).logits, expected, rtol=1e-5, atol=1e-5)
