from typing import Any

import pytest
import torch
from torch import Tensor, nn

from zoo import SpecError, ZooError, recording
from zoo.plugin import Attention, Blueprint, Memory
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_luong.dot import Dot
from zoo_positions.combined import Combined
from zoo_positions.learned import Learned
from zoo_positions.rotary import Rotary
from zoo_positions.sinusoidal import Sinusoidal
from zoo_positions.t5 import T5
from zoo_tokens.token import Token
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.layer_kind import LayerKind
from zoo_transformer.norm import Norm
from zoo_transformer.output import Output
from zoo_transformer.scaled_dot import ScaledDot
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_vision.patches import Patches

TOKENS = torch.tensor([[1, 4, 2, 6, 3], [5, 5, 1, 2, 4], [3, 6, 4, 1, 1]])
MASK = torch.arange(4)[None] < torch.tensor([4, 1, 2])[:, None]


def attention(scorer: Blueprint[Any] | None = None, **form: Any) -> Blueprint[Attention]:
    scorer = scorer or Blueprint.of(ScaledDot)
    return Blueprint.of(Attention, scorer=scorer, align=Blueprint.of(Soft), **form)


def build(
    *,
    memory_dim: int = 8,
    activation: str = "relu",
    norm: dict[str, Any] | None = None,
    **parts: Any,
) -> TransformerDecoder:
    torch.manual_seed(0)
    parts = {"attention": attention(heads=2)} | parts
    return Blueprint.of(
        TransformerDecoder,
        layers=2,
        feed_forward=Blueprint.of(FeedForward, hidden=12, activation=activation),
        norm=Blueprint.of(Norm, **(norm or {})),
        **parts,
    ).build(embedding=Token(vocab=7, dim=8), memory_dim=memory_dim)


def memory(dtype: torch.dtype = torch.float32) -> Memory:
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(3, 4, 8, generator=generator, dtype=dtype)
    return Memory(states, MASK, states.mean(dim=1))


def reference_path(decoder: TransformerDecoder, tokens: Tensor, source: Memory) -> Tensor:
    with recording(decoder):
        return decoder(tokens, source)


def default_path(decoder: TransformerDecoder, tokens: Tensor, source: Memory) -> Tensor:
    return decoder(tokens, source)


def test_two_steps_have_known_values():
    decoder = Blueprint.of(
        TransformerDecoder,
        layers=1,
        attention=attention(Blueprint.of(Dot)),
        feed_forward=Blueprint.of(FeedForward, hidden=1),
        norm=Blueprint.of(Norm, kind="rms", place="pre", eps=1e-12),
        output=Blueprint.of(Output, tied=True),
    ).build(embedding=Token(vocab=3, dim=2), memory_dim=0)
    zero = {"up.weight": (1, 2), "up.bias": (1,), "down.weight": (2, 1), "down.bias": (2,)}
    decoder.load_state_dict(
        {
            "embedding.table.weight": torch.tensor([[0.0, 0], [3, 0], [0, 5]]),
            "output.embedding.table.weight": torch.tensor([[0.0, 0], [3, 0], [0, 5]]),
            "blocks.0.attention_norm.weight": torch.ones(2),
            "blocks.0.feed_forward_norm.weight": torch.ones(2),
            "final_norm.weight": torch.ones(2),
            **{f"blocks.0.feed_forward.{k}": torch.zeros(shape) for k, shape in zero.items()},
        }
    )
    logits = decoder(torch.tensor([[1, 2]]), Memory.empty(1))

    # After the norm, the tokens are r (1, 0) and r (0, 1), r = sqrt(2). The first attends to
    # itself: (3 + r, 0), after the norm (r, 0). The second has weights in the ratio 1 : exp(r r).
    r, e = 2**0.5, torch.tensor(2.0).exp().item()
    x, y = r / (1 + e), 5 + r * e / (1 + e)
    root = ((x * x + y * y) / 2) ** 0.5
    expected = torch.tensor([[[0, 3 * r, 0], [0, 3 * x / root, 5 * y / root]]])
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("place", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_matches_torch_decoder(activation, place, perturb, copy_to_torch_layer, causal):
    pre = place == "pre"
    decoder = perturb(build(activation=activation, norm={"place": place})).double()
    layer = nn.TransformerDecoderLayer(
        8, 2, 12, 0.0, activation, batch_first=True, norm_first=pre, dtype=torch.float64
    )
    other = nn.TransformerDecoder(layer, 2, norm=nn.LayerNorm(8).double() if pre else None)
    for block, one in zip(decoder.blocks, other.layers, strict=True):
        copy_to_torch_layer(block, one)
    if pre:
        other.norm.load_state_dict(decoder.final_norm.state_dict())
    source = memory(torch.float64)

    logits = decoder(TOKENS, source)

    embedded = decoder.embedding.table.weight[TOKENS]
    states = other(embedded, source.states, tgt_mask=causal, memory_key_padding_mask=~MASK)
    expected = states @ decoder.output.map.weight.T
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("place", ["post", "pre"])
def test_decoder_without_source_matches_torch_encoder_with_causal_mask(
    place, perturb, copy_to_torch_layer, causal
):
    decoder = perturb(build(memory_dim=0, norm={"place": place})).double()
    if place == "pre":
        decoder.final_norm = None
    layer = nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, batch_first=True, norm_first=place == "pre", dtype=torch.float64
    )
    other = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    for block, one in zip(decoder.blocks, other.layers, strict=True):
        copy_to_torch_layer(block, one)

    logits = decoder(TOKENS, memory(torch.float64))

    states = other(decoder.embedding.table.weight[TOKENS], mask=causal)
    expected = states @ decoder.output.map.weight.T
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("run", [reference_path, default_path])
@pytest.mark.parametrize("form", [{"heads": 2}, {"heads": 4, "kv_heads": 2}, {"project": "kv"}])
def test_padded_source_positions_have_no_effect(form, run):
    decoder, source = build(attention=attention(**form)), memory()
    noise = 100 * torch.randn(3, 4, 8, generator=torch.Generator().manual_seed(2))
    padded = torch.where(MASK[..., None], source.states, noise)
    changed = torch.where(MASK[..., None], noise, source.states)

    before = run(decoder, TOKENS, source)

    assert torch.equal(run(decoder, TOKENS, Memory(padded, MASK, source.summary)), before)
    assert not torch.allclose(run(decoder, TOKENS, Memory(changed, MASK, source.summary)), before)


@pytest.mark.parametrize("run", [reference_path, default_path])
@pytest.mark.parametrize("memory_dim", [0, 8])
def test_later_tokens_do_not_affect_earlier_logits(memory_dim, run):
    decoder, source = build(memory_dim=memory_dim), memory()
    changed = TOKENS.clone()
    changed[:, 3] = (changed[:, 3] + 1) % 7

    before, after = run(decoder, TOKENS, source), run(decoder, changed, source)

    assert torch.equal(after[:, :3], before[:, :3])
    assert (after[:, 3:] != before[:, 3:]).any(dim=-1).all()


def test_cross_attention_can_differ_from_self_attention():
    cross = attention(Blueprint.of(Additive, hidden=3), heads=1, project="qkv")

    block = build(cross=cross).blocks[0]

    assert block.attention.heads == 2
    assert "scorers.0.U.weight" in block.cross.state_dict()


def test_embedding_norm_normalises_the_embedded_tokens():
    decoder, plain, source = build(norm={"embedding": True}), build(), memory()
    with torch.no_grad():
        table = plain.embedding.table.weight
        table.copy_(nn.functional.layer_norm(table, (8,)))

    torch.testing.assert_close(decoder(TOKENS, source), plain(TOKENS, source), rtol=0, atol=1e-6)


def test_dropout_is_applied_in_training_only():
    decoder, source = build(dropout=0.5), memory()

    trained, again = decoder.train()(TOKENS, source), decoder(TOKENS, source)
    evaluated = decoder.eval()(TOKENS, source)

    assert not torch.equal(trained, again)
    assert torch.equal(evaluated, build()(TOKENS, source))


def test_cross_without_a_source_raises():
    with pytest.raises(SpecError, match="'cross' is set, but the model has no source"):
        build(memory_dim=0, cross=attention(heads=2))


def test_more_steps_than_positions_raise_at_the_start():
    decoder = build(position=Blueprint.of(Learned, length=4))

    decoder.start(memory(), steps=4)
    with pytest.raises(ZooError, match=r"^5 tokens.*4 positions"):
        decoder.start(memory(), steps=5)
    with pytest.raises(ZooError, match=r"5 positions.*4$"):
        decoder(TOKENS, memory())


def test_a_scorer_without_rotary_support_raises():
    additive = attention(Blueprint.of(Additive, hidden=3), heads=2)
    with pytest.raises(SpecError, match=r"position 'rotary'.*scorer 'additive'"):
        build(attention=additive, position=Blueprint.of(Rotary))


def test_an_embedding_without_a_vocabulary_raises():
    decoder = Blueprint.of(
        TransformerDecoder,
        layers=1,
        attention=attention(),
        feed_forward=Blueprint.of(FeedForward, hidden=2),
    )
    with pytest.raises(
        SpecError,
        match="embedding 'patches' is not a token embedding and has no vocabulary",
    ):
        decoder.build(embedding=Patches(size=2, dim=4), memory_dim=0)


def test_state_dict_keys():
    norm, position = {"place": "pre", "embedding": True}, Blueprint.of(Learned, length=9)
    decoder = build(norm=norm, position=position)
    parts = [
        f"{attention}.{name}"
        for attention in ("attention", "cross")
        for name in ("query", "key", "value", "out")
    ]
    parts += ["attention_norm", "cross_norm", "feed_forward_norm"]
    parts += ["feed_forward.up", "feed_forward.down"]
    names = [f"blocks.{i}.{part}" for i in range(2) for part in parts]
    names += ["embedding_norm", "final_norm"]

    expected = {f"{name}.{kind}" for name in names for kind in ("weight", "bias")}
    expected |= {"embedding.table.weight", "position.table.weight", "output.map.weight"}
    assert set(decoder.state_dict()) == expected


def test_layers_differ_by_their_kind():
    kinds = [Blueprint.of(LayerKind, window=2), Blueprint.of(LayerKind, no_position=True)]
    decoder = build(memory_dim=0, pattern=kinds, position=Blueprint.of(Rotary)).double()
    assert [block.window for block in decoder.blocks] == [2, None]
    assert [block.no_position for block in decoder.blocks] == [False, True]
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6]])
    expected = decoder(tokens, Memory.empty(1))
    state, logits = decoder.start(Memory.empty(1), steps=6), []
    for part in tokens.split([2, 3, 1], dim=1):
        found, state = decoder.step(part, state)
        logits.append(found)
    torch.testing.assert_close(torch.cat(logits, dim=1), expected)


def test_each_layer_has_its_own_bias():
    kinds = [Blueprint.of(LayerKind, position=Blueprint.of(T5, buckets=4, max_distance=8))]
    decoder = build(memory_dim=0, pattern=kinds, position=Blueprint.of(Learned, length=8)).double()
    tables = [block.position.table.weight for block in decoder.blocks]
    assert not torch.equal(*tables)
    shared = build(memory_dim=0, position=Blueprint.of(Combined, parts=[
        Blueprint.of(Learned, length=8), Blueprint.of(T5, buckets=4, max_distance=8),
    ])).double()  # fmt: skip
    weights = {k: v for k, v in decoder.state_dict().items() if "position" not in k}
    weights["position.parts.0.table.weight"] = decoder.position.table.weight
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6]])
    with torch.no_grad():
        expected = decoder(tokens, Memory.empty(1))
        tables[1].copy_(tables[0])
        shared.load_state_dict({**weights, "position.parts.1.table.weight": tables[0]})
        same = decoder(tokens, Memory.empty(1))
    torch.testing.assert_close(same, shared(tokens, Memory.empty(1)))
    assert not torch.allclose(same, expected)


def test_steps_use_the_bias_of_each_layer():
    kinds = [Blueprint.of(LayerKind, position=Blueprint.of(T5, buckets=4, max_distance=8))]
    decoder = build(pattern=kinds).double().eval()
    source = memory(torch.float64)
    with torch.no_grad():
        expected = reference_path(decoder, TOKENS, source)
        state, logits = decoder.start(source, steps=5), []
        for part in TOKENS.split(1, dim=1):
            found, state = decoder.step(part, state)
            logits.append(found)
    torch.testing.assert_close(torch.cat(logits, dim=1), expected)


def test_two_biases_are_rejected():
    bias = Blueprint.of(T5, buckets=4, max_distance=8)
    with pytest.raises(SpecError, match="position 't5' and 't5' of a layer both add a bias"):
        build(pattern=[Blueprint.of(LayerKind, position=bias)], position=bias)


def test_a_layer_cannot_add_positions():
    learned = Blueprint.of(Learned, length=8)
    with pytest.raises(SpecError, match="require rotary positions, not 'learned'"):
        build(pattern=[Blueprint.of(LayerKind, position=learned)])


def test_layers_without_positions_require_rotary_positions():
    with pytest.raises(SpecError, match="require rotary positions, not 'sinusoidal'"):
        build(
            pattern=[Blueprint.of(LayerKind, no_position=True)],
            position=Blueprint.of(Sinusoidal),
        )
