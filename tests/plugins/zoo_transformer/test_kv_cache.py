"""Decoding with a key-value cache, compared with the forward pass."""

from typing import Any

import pytest
import torch
from torch import Tensor

from zoo import recording
from zoo.plugin import Attention, Blueprint, Memory, State
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_luong.concat import Concat
from zoo_luong.dot import Dot
from zoo_luong.general import General
from zoo_positions.alibi import ALiBi
from zoo_positions.learned import Learned
from zoo_positions.rotary import Rotary
from zoo_positions.sinusoidal import Sinusoidal
from zoo_positions.t5 import T5
from zoo_tokens.token import Token
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.norm import Norm
from zoo_transformer.scaled_dot import ScaledDot
from zoo_transformer.transformer_decoder import TransformerDecoder

SCORERS = {
    "dot": Blueprint.of(Dot),
    "general": Blueprint.of(General),
    "concat": Blueprint.of(Concat, hidden=3),
    "additive": Blueprint.of(Additive, hidden=3),
    "scaled-dot": Blueprint.of(ScaledDot),
}
POSITIONS = {
    "none": None,
    "sinusoidal": Blueprint.of(Sinusoidal),
    "learned": Blueprint.of(Learned, length=4),
    "rotary": Blueprint.of(Rotary),
    "rotary-interleaved": Blueprint.of(Rotary, layout="interleaved"),
    "alibi": Blueprint.of(ALiBi),
    "t5": Blueprint.of(T5, buckets=4, max_distance=8),
}
PAIRS = [
    (position, scorer)
    for position in POSITIONS
    for scorer in SCORERS
    # Rotary positions require an inner product.
    if not position.startswith("rotary") or scorer in ("dot", "scaled-dot")
]
HEADS = {
    "bare": {},
    "two": {"heads": 2},
    "four-for-two": {"heads": 4, "kv_heads": 2},
    "one": {"project": "qkv"},
    "shared": {"heads": 2, "project": "kv"},
    "four-for-one": {"heads": 4, "kv_heads": 1},
}
TOKENS = torch.tensor([[1, 4, 2, 6], [5, 5, 1, 2], [3, 6, 4, 1]])
MASK = torch.arange(4)[None] < torch.tensor([4, 1, 2])[:, None]


def build(
    position: str = "sinusoidal",
    scorer: str = "scaled-dot",
    form: str = "two",
    place: str = "post",
    source: bool = True,
) -> TransformerDecoder:
    torch.manual_seed(0)
    return Blueprint.of(
        TransformerDecoder,
        layers=2,
        attention=Blueprint.of(
            Attention, scorer=SCORERS[scorer], align=Blueprint.of(Soft), **HEADS[form]
        ),
        feed_forward=Blueprint.of(FeedForward, hidden=12),
        norm=Blueprint.of(Norm, place=place),
        position=POSITIONS[position],
    ).build(embedding=Token(vocab=7, dim=8), memory_dim=8 if source else 0)


def memory() -> Memory:
    states = torch.randn(3, 4, 8, generator=torch.Generator().manual_seed(1))
    return Memory(states, MASK, states.mean(dim=1))


def run_steps(decoder: TransformerDecoder, sizes: list[int], state: State) -> Tensor:
    pieces = []
    for tokens in TOKENS.split(sizes, dim=1):
        logits, state = decoder.step(tokens, state)
        pieces.append(logits)
    assert state.per_hypothesis["at"].tolist() == [4, 4, 4]
    return torch.cat(pieces, dim=1)


@pytest.mark.parametrize(
    ("place", "source"),
    [
        pytest.param("post", True, id="post-source"),
        pytest.param("pre", False, id="pre-alone"),
        pytest.param("pre", True, id="pre-source", marks=pytest.mark.slow),
        pytest.param("post", False, id="post-alone", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("form", ["bare", "two", "four-for-two"])
@pytest.mark.parametrize(("position", "scorer"), PAIRS)
def test_steps_match_forward(position, scorer, form, place, source):
    check_steps(build(position, scorer, form, place, source))


@pytest.mark.parametrize("form", ["one", "shared", "four-for-one"])
@pytest.mark.parametrize("position", POSITIONS)
def test_steps_match_forward_in_other_configurations(position, form):
    check_steps(build(position, form=form))


def check_steps(decoder: TransformerDecoder) -> None:
    """Decode one and several tokens at a time, with and without gradients."""
    source_memory = memory()
    expected = decoder(TOKENS, source_memory)

    for grad in (True, False):
        for sizes in ([1] * 4, [2, 1, 1]):
            with torch.set_grad_enabled(grad):
                pieces = run_steps(decoder, sizes, decoder.start(source_memory, steps=4))

            assert pieces.requires_grad is grad
            torch.testing.assert_close(pieces, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("position", POSITIONS)
def test_steps_match_forward_on_the_reference_path(position):
    decoder, source_memory = build(position, form="four-for-two"), memory()
    expected = decoder(TOKENS, source_memory)

    with recording(decoder) as log, torch.no_grad():
        pieces = run_steps(decoder, [1] * 4, decoder.start(source_memory, steps=4))

    torch.testing.assert_close(pieces, expected, rtol=0, atol=1e-5)
    # Later positions have weight 0.
    for t, weights in enumerate(log["blocks.1.attention"]):
        assert torch.count_nonzero(weights[..., t + 1 :]) == 0
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 4, 1))


@pytest.mark.parametrize("position", POSITIONS)
def test_unused_cache_has_no_effect(position):
    decoder, source_memory = build(position), memory()
    expected = decoder(TOKENS[:, :3], source_memory)

    with torch.no_grad():
        logits, _ = decoder.step(TOKENS[:, :3], decoder.start(source_memory, steps=4))

    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


def test_cache_has_kv_heads_only():
    state = build(form="four-for-one").start(memory(), steps=5)

    assert {k: tuple(v.shape) for k, v in state.per_hypothesis.items()} == {
        "at": (3,),
        **{f"{i}.{name}": (3, 1, 5, 2) for i in range(2) for name in ("keys", "values")},
    }
    assert {k: tuple(v.shape) for k, v in state.per_source.items()} == {
        "mask": (3, 4),
        **{f"{i}.{name}": (3, 1, 4, 2) for i in range(2) for name in ("keys", "values")},
    }


@pytest.mark.parametrize("position", ["learned", "rotary", "t5"])
def test_gradients_through_the_cache_match_forward(position):
    decoder, source_memory = build(position), memory()
    weight = torch.randn(3, 4, 7, generator=torch.Generator().manual_seed(3))

    def gradients(logits: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad((logits * weight).sum(), list(decoder.parameters())))

    expected = gradients(decoder(TOKENS, source_memory))
    actual = gradients(run_steps(decoder, [1, 3], decoder.start(source_memory, steps=4)))

    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_a_step_with_gradients_does_not_modify_the_previous_state():
    decoder, source_memory = build(), memory()
    _, state = decoder.step(TOKENS[:, :2], decoder.start(source_memory, steps=4))
    before = {name: tensor.clone() for name, tensor in state.per_hypothesis.items()}

    decoder.step(TOKENS[:, 2:], state)

    assert all(torch.equal(state.per_hypothesis[name], tensor) for name, tensor in before.items())


def test_cache_is_updated_in_place_without_gradients():
    decoder, source_memory = build(), memory()

    with torch.no_grad():
        state = decoder.start(source_memory, steps=4)
        _, after = decoder.step(TOKENS[:, :2], state)

    assert after.per_hypothesis["0.keys"].data_ptr() == state.per_hypothesis["0.keys"].data_ptr()


def branch_state(kind: str, state: State) -> tuple[State, Tensor]:
    """Return a branch of the state and the row that each of its rows continues."""
    rows: dict[str, Any] = {
        "reordered": torch.tensor([2, 0, 0]),
        "kept in order": torch.arange(3),
        "repeated": torch.arange(3).repeat_interleave(2),
        "repeated once": torch.arange(3),
    }
    if kind.startswith("repeated"):
        return state.repeat(1 if kind.endswith("once") else 2), rows[kind]
    return state.reorder(rows[kind]), rows[kind]


@pytest.mark.parametrize("kind", ["reordered", "kept in order", "repeated", "repeated once"])
@pytest.mark.parametrize("source", [True, False], ids=["source", "alone"])
@torch.no_grad()
def test_branches_of_one_state_are_independent(source, kind):
    decoder, source_memory = build("learned", source=source), memory()
    if not kind.startswith("repeated"):  # rows that are reordered belong to one source
        source_memory = Memory(
            source_memory.states[:1].expand(3, -1, -1),
            MASK[:1].expand(3, -1),
            source_memory.summary,
        )
    _, trunk = decoder.step(TOKENS[:, :2], decoder.start(source_memory, steps=4))
    branch, rows = branch_state(kind, trunk)
    other = (TOKENS[rows] + 1) % 7

    outputs: list[list[Tensor]] = [[], []]
    for t in range(2, 4):  # alternating, so that one could overwrite the other
        logits, trunk = decoder.step(TOKENS[:, t : t + 1], trunk)
        outputs[0].append(logits)
        logits, branch = decoder.step(other[:, t : t + 1], branch)
        outputs[1].append(logits)

    expected = decoder(TOKENS, source_memory)[:, 2:]
    torch.testing.assert_close(torch.cat(outputs[0], dim=1), expected, rtol=0, atol=1e-5)
    tokens = torch.cat([TOKENS[rows, :2], other[:, 2:]], dim=1)
    sources = Memory(
        source_memory.states[rows], source_memory.mask[rows], source_memory.summary[rows]
    )
    expected = decoder(tokens, sources)[:, 2:]
    torch.testing.assert_close(torch.cat(outputs[1], dim=1), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("form", ["two", "four-for-two"])
@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_offsets_in_a_tensor_match_forward(position, form):
    """On a GPU the offset is not read, and attention covers the whole cache."""
    decoder, source_memory = build(position, form=form), memory()
    expected = decoder(TOKENS, source_memory)
    state, pieces = decoder.start(source_memory, steps=4), []

    for tokens in TOKENS.split([2, 1, 1], dim=1):
        states, state = decoder.step_blocks(tokens, state, state.per_hypothesis["at"][0])
        pieces.append(decoder.logits(states))

    torch.testing.assert_close(torch.cat(pieces, dim=1), expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_a_bias_is_computed_once_for_all_layers():
    decoder, operations = build("t5"), []
    decoder.position.register_forward_hook(lambda _, args, output: operations.append(args[0]))

    decoder(TOKENS, memory())
    state = decoder.start(memory(), steps=4)
    operations_of_start = operations.count("bias")
    decoder.step(TOKENS[:, :1], state)

    assert operations_of_start == 1
    assert operations.count("bias") == 2
