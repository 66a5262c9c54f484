from typing import Any

import pytest
import torch
from torch import Tensor, nn

import zoo
from zoo import recording
from zoo.plugin import Attention, Blueprint, Mask, Memory
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_luong.dot import Dot
from zoo_positions.alibi import ALiBi
from zoo_positions.learned import Learned
from zoo_positions.rotary import Rotary
from zoo_positions.sinusoidal import Sinusoidal
from zoo_positions.t5 import T5
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.norm import Norm
from zoo_transformer.scaled_dot import ScaledDot
from zoo_transformer.transformer_encoder import TransformerEncoder

MASK = torch.arange(5)[None] < torch.tensor([5, 2, 3])[:, None]
POSITIONS = {
    "none": None,
    "sinusoidal": Blueprint.of(Sinusoidal),
    "learned": Blueprint.of(Learned, length=5),
    "rotary": Blueprint.of(Rotary),
    "alibi": Blueprint.of(ALiBi),
    "t5": Blueprint.of(T5, buckets=4, max_distance=8),
}


def build(
    *,
    scorer: Blueprint[Any] | None = None,
    heads: int = 2,
    activation: str = "relu",
    dropout: float = 0.0,
    weight_dropout: float = 0.0,
    position: str = "none",
    **norm: Any,
) -> TransformerEncoder:
    torch.manual_seed(0)
    return Blueprint.of(
        TransformerEncoder,
        layers=2,
        attention=Blueprint.of(
            Attention,
            scorer=scorer or Blueprint.of(ScaledDot),
            align=Blueprint.of(Soft, dropout=weight_dropout),
            heads=heads,
        ),
        feed_forward=Blueprint.of(FeedForward, hidden=12, activation=activation),
        norm=Blueprint.of(Norm, **norm),
        position=POSITIONS[position],
        dropout=dropout,
    ).build(input_dim=8)


def randn(seed: int = 1, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def reference_path(encoder: TransformerEncoder, inputs: Tensor, mask: Tensor) -> Memory:
    with recording(encoder):
        return encoder(inputs, mask)


def default_path(encoder: TransformerEncoder, inputs: Tensor, mask: Tensor) -> Memory:
    return encoder(inputs, mask)


def test_one_block_has_known_values():
    encoder = Blueprint.of(
        TransformerEncoder,
        layers=1,
        attention=Blueprint.of(Attention, scorer=Blueprint.of(Dot), align=Blueprint.of(Soft)),
        feed_forward=Blueprint.of(FeedForward, hidden=2),
        norm=Blueprint.of(Norm, kind="rms", place="pre", eps=1e-12),
    ).build(input_dim=2)
    encoder.load_state_dict(
        {
            "blocks.0.attention_norm.weight": torch.tensor([0.0, 1.0]),
            "blocks.0.feed_forward.up.weight": torch.eye(2),
            "blocks.0.feed_forward.up.bias": torch.tensor([0.0, -1.0]),
            "blocks.0.feed_forward.down.weight": torch.eye(2),
            "blocks.0.feed_forward.down.bias": torch.tensor([0.0, 0.5]),
            "blocks.0.feed_forward_norm.weight": torch.tensor([1.0, 0.0]),
            "final_norm.weight": torch.tensor([1.0, 2.0]),
        }
    )

    memory = encoder(
        torch.tensor([[[1.0, 0.0], [-1.0, 0.0], [7.0, 7.0]]]), torch.tensor([[True, True, False]])
    )

    # Attention outputs zeros. The feed-forward adds sqrt(2) to the first component of the first
    # position, (1 + sqrt(2), 0.5); that of the second, -sqrt(2), is cut by ReLU: (-1, 0.5). The
    # final norm doubles the second component; the padded position is zero.
    def normed(x: float, y: float) -> list[float]:
        root = ((x * x + y * y) / 2) ** 0.5
        return [x / root, 2 * y / root]

    first, second = normed(1 + 2**0.5, 0.5), normed(-1, 0.5)
    mean = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    torch.testing.assert_close(memory.states, torch.tensor([[first, second, [0, 0]]]))
    torch.testing.assert_close(memory.summary, torch.tensor([mean]))


@pytest.mark.parametrize("place", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_matches_torch_encoder(activation, place, perturb, copy_to_torch_layer):
    encoder = perturb(build(activation=activation, place=place)).double()
    pre = place == "pre"
    layer = nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, activation, batch_first=True, norm_first=pre, dtype=torch.float64
    )
    last = nn.LayerNorm(8).double() if pre else None
    other = nn.TransformerEncoder(layer, 2, norm=last, enable_nested_tensor=False)
    for block, one in zip(encoder.blocks, other.layers, strict=True):
        copy_to_torch_layer(block, one)
    if last is not None:
        last.load_state_dict(encoder.final_norm.state_dict())
    inputs = randn(dtype=torch.float64)

    memory = encoder(inputs, MASK)

    expected = other(inputs, src_key_padding_mask=~MASK)
    torch.testing.assert_close(memory.states[MASK], expected[MASK], rtol=0, atol=1e-10)
    assert torch.count_nonzero(memory.states[~MASK]) == 0
    for b, length in enumerate([5, 2, 3]):
        mean = expected[b, :length].mean(dim=0)
        torch.testing.assert_close(memory.summary[b], mean, rtol=0, atol=1e-10)


@pytest.mark.parametrize("run", [reference_path, default_path])
@pytest.mark.parametrize("position", POSITIONS)
def test_padded_positions_have_no_effect(position, run):
    encoder, inputs = build(position=position), randn()
    changed = torch.where(MASK[..., None], inputs, 100 * randn(seed=2))

    before, after = run(encoder, inputs, MASK), run(encoder, changed, MASK)

    assert torch.equal(after.states, before.states)
    assert torch.equal(after.summary, before.summary)


@pytest.mark.parametrize("run", [reference_path, default_path])
@pytest.mark.parametrize("position", POSITIONS)
def test_a_padded_batch_matches_its_items(position, run):
    encoder, inputs = build(position=position, place="pre"), randn()

    together = run(encoder, inputs, MASK).states

    for b, length in enumerate([5, 2, 3]):
        item, mask = inputs[b : b + 1, :length], torch.ones(1, length, dtype=torch.bool)
        alone = run(encoder, item, mask).states[0]
        torch.testing.assert_close(together[b, :length], alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("position", POSITIONS)
def test_fused_path_matches_reference_path(position):
    encoder, inputs = build(position=position), randn()

    reference, fused = reference_path(encoder, inputs, MASK), default_path(encoder, inputs, MASK)

    torch.testing.assert_close(fused.states, reference.states, rtol=0, atol=1e-5)


@pytest.mark.parametrize("run", [reference_path, default_path])
@pytest.mark.parametrize("position", POSITIONS)
def test_an_item_of_padding_is_zero_with_finite_gradients(position, run):
    encoder, inputs = build(position=position), randn().requires_grad_()
    mask = MASK & torch.tensor([[True], [False], [True]])

    memory = run(encoder, inputs, mask)
    memory.states.square().sum().backward()

    assert torch.count_nonzero(memory.states[1]) == torch.count_nonzero(memory.summary[1]) == 0
    assert inputs.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in encoder.parameters() if p.grad is not None)


@pytest.mark.parametrize("position", [name for name in POSITIONS if name != "none"])
def test_positions_break_permutation_invariance(position):
    inputs, mask = randn(), torch.ones(3, 5, dtype=torch.bool)
    flipped = inputs.flip(1)
    without, with_ = build(), build(position=position)

    same = without(flipped, mask).states.flip(1)
    torch.testing.assert_close(same, without(inputs, mask).states, rtol=0, atol=1e-5)
    other = with_(flipped, mask).summary
    # ALiBi depends on distances only, so it is invariant to reversal but not to permutation.
    shuffled = with_(inputs[:, [0, 2, 4, 1, 3]], mask).summary
    plain = with_(inputs, mask).summary
    assert not torch.allclose(shuffled, plain, rtol=0, atol=1e-4)
    assert torch.allclose(other, plain, rtol=0, atol=1e-5) == (position == "alibi")


def test_embedding_norm_normalises_the_inputs():
    inputs, normed, plain = randn(), build(embedding=True), build()

    expected = plain(nn.functional.layer_norm(inputs, (8,)), MASK).states

    torch.testing.assert_close(normed(inputs, MASK).states, expected, rtol=0, atol=1e-6)


def test_dropout_is_applied_in_training_only():
    encoder, inputs, without = build(dropout=0.5), randn(), build()

    trained = encoder.train()(inputs, MASK).states
    again = encoder(inputs, MASK).states
    evaluated = encoder.eval()(inputs, MASK).states

    assert not torch.equal(trained, again)
    assert torch.equal(evaluated, without(inputs, MASK).states)


def test_dropout_of_weights_is_applied_in_training_only():
    encoder, inputs = build(weight_dropout=0.5), randn()

    trained = encoder.train()(inputs, MASK).states
    again = encoder(inputs, MASK).states
    evaluated = encoder.eval()(inputs, MASK).states

    assert not torch.equal(trained, again)
    assert torch.equal(evaluated, build()(inputs, MASK).states)


def test_each_head_has_its_own_scorer():
    encoder = build(scorer=Blueprint.of(Additive, hidden=4), heads=2)

    assert len(encoder.blocks[0].attention.scorers) == 2
    assert encoder(randn(), MASK).states.isfinite().all()


def test_state_dict_keys():
    encoder = build(place="pre", embedding=True, position="learned")
    parts = [f"attention.{name}" for name in ("query", "key", "value", "out")]
    parts += ["attention_norm", "feed_forward.up", "feed_forward.down", "feed_forward_norm"]
    names = [f"blocks.{i}.{part}" for i in range(2) for part in parts]
    names += ["embedding_norm", "final_norm"]

    expected = {f"{name}.{kind}" for name in names for kind in ("weight", "bias")}
    assert set(encoder.state_dict()) == expected | {"position.table.weight"}
    assert (encoder.output_dim, encoder.summary_dim, encoder.carry) == (8, 8, {})


@torch.no_grad()
@pytest.mark.parametrize("place", ["pre", "post"])
def test_a_causal_encoder_does_not_use_later_positions(place, monkeypatch):
    encoder = {
        "type": "transformer", "layers": 2, "causal": True, "norm": {"place": place},
        "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
        "feed_forward": {"hidden": 12},
    }  # fmt: skip
    model = {"type": "features", "source": {"type": "token", "vocab": 9, "dim": 8, "padding": None}}
    model = zoo.compose({"zoo": 1, "name": "test", "model": model | {"encoder": encoder}}).eval()
    tokens = torch.tensor([[1, 2, 3, 4, 5]])
    expected = model({"source": tokens}).logits
    torch.testing.assert_close(model({"source": tokens[:, :3]}).logits, expected[:, :3])
    assert not torch.allclose(model({"source": tokens[:, 1:]}).logits, expected[:, 1:])
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    actual = zoo.accelerate(model)({"source": tokens}).logits
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def test_the_first_block_can_lack_the_norm_before_its_attention():
    encoder = build(place="pre", embedding=True, first=False, bias=False)
    names = [name for name in encoder.state_dict() if "norm" in name]
    assert names == [
        "blocks.0.feed_forward_norm.weight",
        "blocks.1.attention_norm.weight",
        "blocks.1.feed_forward_norm.weight",
        "embedding_norm.weight",
        "final_norm.weight",
    ]
    first, x = encoder.blocks[0], torch.randn(1, 5, encoder.output_dim)
    states = x + first.attention(x, x).context
    states = states + first.feed_forward(first.feed_forward_norm(states))
    torch.testing.assert_close(first(x, Mask(), position=None), states)
    plain = encoder(x, MASK[:1]).states
    torch.testing.assert_close(zoo.accelerate(encoder)(x, MASK[:1]).states, plain)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"share_layers": True}, "share_layers requires norms of all layers"),
        ({"sublayers": "parallel"}, "first: false require sublayers: sequential"),
    ],
)
def test_stacks_that_need_the_first_norm(params, reason):
    spec = {
        "zoo": 1,
        "name": "test",
        "model": {
            "type": "features",
            "source": {"type": "token", "vocab": 5, "dim": 4},
            "encoder": {
                "type": "transformer",
                "layers": 2,
                "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
                "feed_forward": {"hidden": 4},
                "norm": {"place": "pre", "first": False},
                **params,
            },
        },
    }
    with pytest.raises(zoo.SpecError, match=reason):
        zoo.check(spec)
