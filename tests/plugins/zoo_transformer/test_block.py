from typing import Any

import pytest
import torch
from torch import Tensor, nn

from zoo import SpecError, ZooError, accelerate
from zoo.plugin import Alignment, AlignmentContext, Attention, Blueprint, Mask, WidthConflict
from zoo_alignment.soft import Soft
from zoo_luong.dot import Dot
from zoo_luong.general import General
from zoo_positions.rotary import Rotary
from zoo_transformer.block import Block
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.layer_kind import LayerKind, StackOptions
from zoo_transformer.norm import Norm
from zoo_transformer.scaled_dot import ScaledDot

MASK = torch.tensor([[True] * 5, [True, True, False, False, False]])


def attention(scorer: type = ScaledDot, align: type = Soft, **form: Any) -> Blueprint[Attention]:
    return Blueprint.of(Attention, scorer=Blueprint.of(scorer), align=Blueprint.of(align), **form)


def build(
    attention: Blueprint[Attention],
    *,
    dim: int = 8,
    cross: bool = False,
    activation: str = "relu",
    place: str = "post",
    kind: LayerKind | None = None,
    **options: Any,
) -> Block:
    torch.manual_seed(0)
    return Block(
        dim=dim,
        memory_dim=dim if cross else 0,
        attention=attention,
        cross=attention if cross else None,
        feed_forward=Blueprint.of(FeedForward, hidden=12, activation=activation),
        norm=Norm(place=place),
        kind=kind,
        options=StackOptions(**options),
    )


def randn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Sequential(Alignment):
    """An alignment that needs the weights of the previous query."""

    name = "sequential"
    sequential = True

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        return scores.softmax(dim=-1)


@pytest.mark.parametrize("place", ["post", "pre"])
def test_one_position_has_known_values(place):
    """A single position attends to itself, so the output of attention is its input."""
    block = build(attention(Dot), dim=2, place=place).double()
    block.load_state_dict(
        {
            "attention_norm.weight": torch.tensor([2.0, 2.0]),
            "attention_norm.bias": torch.tensor([1.0, 0.0]),
            "feed_forward.up.weight": torch.eye(12, 2),
            "feed_forward.up.bias": torch.zeros(12),
            "feed_forward.down.weight": 3 * torch.eye(2, 12),
            "feed_forward.down.bias": torch.zeros(2),
            "feed_forward_norm.weight": torch.ones(2),
            "feed_forward_norm.bias": torch.zeros(2),
        }
    )

    output = block(torch.tensor([[[3.0, 1.0]]], dtype=torch.float64), Mask(), position=None)

    # LayerNorm of two values is (1, -1), with 1 for the larger, up to eps.
    # Post: LN(2x) = (2 + 1, -2); plus the feed-forward (9, 0): LN(12, -2).
    # Pre: x + (3, -2) = (6, -1); plus the feed-forward of LN = (1, -1), which is (3, 0).
    expected = [1.0, -1.0] if place == "post" else [9.0, -1.0]
    torch.testing.assert_close(
        output[0, 0], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-4
    )


def test_norms_on_the_output_of_sublayers_equal_the_formula():
    x = randn(1, 3, 8)
    for place in ("output", "both"):
        block = build(attention(heads=2), place=place).double()
        for index, parameter in enumerate(block.parameters()):
            parameter.data += 0.1 * randn(*parameter.shape, seed=index)
        sublayers = (
            lambda y, block=block: block.attention(y, y, Mask()).context,
            block.feed_forward,
        )
        expected = x
        for name, sublayer in zip(("attention", "feed_forward"), sublayers, strict=True):
            norm = block.get_submodule(f"{name}_norm")
            if place == "output":
                expected = expected + norm(sublayer(expected))
            else:
                after = block.get_submodule(f"{name}_output_norm")
                expected = expected + after(sublayer(norm(expected)))
        torch.testing.assert_close(block(x, Mask(), position=None), expected)


@pytest.mark.parametrize("place", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_block_matches_torch_encoder_layer(activation, place, perturb, copy_to_torch_layer):
    block = perturb(build(attention(heads=2), activation=activation, place=place)).double()
    layer = nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, activation, batch_first=True, norm_first=place == "pre"
    ).double()
    copy_to_torch_layer(block, layer)
    x = randn(2, 5, 8)

    output = block(x, Mask(keys=MASK), position=None)

    expected = layer(x, src_key_padding_mask=~MASK)
    torch.testing.assert_close(output[MASK], expected[MASK], rtol=0, atol=1e-10)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("place", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_block_with_memory_matches_torch_decoder_layer(
    activation, place, raw, perturb, copy_to_torch_layer, causal
):
    block = perturb(build(attention(heads=2), cross=True, activation=activation, place=place))
    block = block.double()
    layer = nn.TransformerDecoderLayer(
        8, 2, 12, 0.0, activation, batch_first=True, norm_first=place == "pre"
    ).double()
    copy_to_torch_layer(block, layer)
    x, memory = randn(2, 5, 8), randn(2, 5, 8, seed=2)

    output = block(
        x,
        Mask(causal=True),
        position=None,
        memory=memory if raw else block.cross.prepare(memory),
        memory_mask=Mask(keys=MASK),
    )

    expected = layer(x, memory, tgt_mask=causal, memory_key_padding_mask=~MASK)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-10)


def test_attention_matches_torch_multihead_attention(perturb, copy_to_torch_attention):
    block = perturb(build(attention(heads=4))).double()
    other = nn.MultiheadAttention(8, 4, batch_first=True).double()
    copy_to_torch_attention(block.attention, other)
    query, memory = randn(2, 3, 8), randn(2, 5, 8, seed=2)

    context = block.attention(query, memory, Mask(keys=MASK)).context

    expected, _ = other(query, memory, memory, key_padding_mask=~MASK)
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-10)


@torch.no_grad()
def test_dropout_is_applied_to_sublayer_outputs_only():
    block = build(attention(heads=2), place="pre", dropout=0.5)
    for parameter in block.parameters():
        parameter.zero_()
    block.attention.out.bias.fill_(1.0)
    block.feed_forward.down.bias.fill_(10.0)
    x = torch.zeros(20, 5, 8)

    def outputs() -> set[float]:
        return set(block(x + 0.5, Mask(), position=None).sub(0.5).flatten().tolist())

    # Outputs that are not dropped are doubled.
    assert outputs() == {0.0, 2.0, 20.0, 22.0}
    block.eval()
    assert outputs() == {11.0}


def test_an_attention_with_another_output_width_raises():
    narrow = attention(project="none", heads=1)

    with pytest.raises(WidthConflict, match=r"project: qkv.*dim is 8, output_dim is 6"):
        Block(
            dim=8,
            memory_dim=6,
            attention=narrow,
            cross=Blueprint.of(Attention, scorer=Blueprint.of(General), align=Blueprint.of(Soft)),
            feed_forward=Blueprint.of(FeedForward, hidden=4),
            norm=Norm(),
        )


def test_a_sequential_alignment_raises():
    with pytest.raises(ZooError, match=r"alignment 'sequential'.*Transformer"):
        build(attention(align=Sequential, heads=2))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"heads": 3}, r"query_dim \(8\).*heads \(3\).*head_dim"),
        ({"heads": 4, "kv_heads": 3}, r"heads \(4\) must be divisible by kv_heads \(3\)"),
        ({"kv_heads": 1}, r"kv_heads .*project: qkv"),
    ],
)
def test_invalid_heads_raise(form, message):
    with pytest.raises(SpecError, match=message):
        build(attention(**form))


def test_state_dict_keys():
    block = build(attention(heads=4, kv_heads=2), cross=True)
    linears = {
        f"{name}.{part}": 4 if part in ("key", "value") else 8
        for name in ("attention", "cross")
        for part in ("query", "key", "value", "out")
    } | {"feed_forward.up": 12, "feed_forward.down": 8}
    norms = ("attention_norm", "cross_norm", "feed_forward_norm")

    assert {key: value.shape[0] for key, value in block.state_dict().items()} == {
        f"{name}.{part}": width
        for name, width in (linears | dict.fromkeys(norms, 8)).items()
        for part in ("weight", "bias")
    }


@pytest.mark.parametrize("sublayers", ["parallel", "parallel-shared"])
def test_parallel_sublayers_equal_the_formula(sublayers):
    block = build(attention(heads=2), place="pre", sublayers=sublayers).double()
    for index, parameter in enumerate(block.parameters()):
        parameter.data += 0.1 * randn(*parameter.shape, seed=index)
    x = randn(2, 5, 8)
    first = block.attention_norm(x)
    second = first if sublayers == "parallel-shared" else block.feed_forward_norm(x)
    context = block.attention(first, first, Mask(causal=True)).context
    expected = x + context + block.feed_forward(second)
    torch.testing.assert_close(block(x, Mask(causal=True), position=None), expected)
    assert ("feed_forward_norm.weight" in block.state_dict()) == (sublayers == "parallel")


@pytest.mark.parametrize("form", [{"place": "post"}, {"place": "pre", "cross": True}])
def test_parallel_sublayers_require_norms_before_them_and_no_source(form):
    with pytest.raises(ZooError, match=r"^parallel sublayers require"):
        build(attention(heads=2), sublayers="parallel", **form)


@pytest.mark.parametrize("fast", [False, True])
def test_a_window_masks_distant_positions(fast):
    block = build(attention(heads=2), kind=LayerKind(window=2))
    block = accelerate(block) if fast else block
    x = randn(2, 6, 8).float()
    changed = x.clone()
    changed[:, 2] += 1
    for mask, reached in ((Mask(causal=True), {2, 3}), (Mask(), {1, 2, 3})):
        before, after = (block(states, mask, position=None) for states in (x, changed))
        different = (before - after).abs().amax(dim=(0, 2)) > 1e-6
        assert set(different.nonzero().flatten().tolist()) == reached


def test_layers_use_the_position_of_their_kind():
    x, shared = randn(1, 4, 8).float(), Rotary(head_dim=4)
    own = Blueprint.of(Rotary, theta=9.0)

    def output(stack_position, **kind):
        block = build(attention(heads=2), kind=LayerKind(**kind)).eval()
        return block(x, Mask(), position=stack_position)

    assert torch.equal(output(shared, no_position=True), output(None))
    assert torch.equal(output(shared, position=own), output(Rotary(head_dim=4, theta=9.0)))
    assert not torch.equal(output(shared), output(shared, position=own))
