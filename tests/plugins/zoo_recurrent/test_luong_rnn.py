import math

import numpy as np
import pytest
import torch

from zoo import ZooError, recording
from zoo.plugin import Attention, Blueprint, Memory
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_luong.concat import Concat
from zoo_luong.dot import Dot
from zoo_luong.general import General
from zoo_recurrent.luong_rnn import LuongRNN
from zoo_tokens.token import Token
from zoo_transformer.scaled_dot import ScaledDot

SCORERS = {
    "dot": Blueprint.of(Dot),
    "general": Blueprint.of(General),
    "concat": Blueprint.of(Concat, hidden=3),
    "additive": Blueprint.of(Additive, hidden=3),
    "scaled-dot": Blueprint.of(ScaledDot),
}
CELLS = ["rnn", "lstm", "gru", "gru-cho"]
LENGTHS = [4, 1, 2, 0]
TOKENS = torch.tensor([[1, 4, 2, 6, 3], [5, 5, 1, 2, 0], [3, 6, 4, 1, 1], [2, 2, 5, 6, 4]])


def build(
    scorer: str = "general",
    cell: str = "lstm",
    layers: int = 1,
    init: str = "bridge",
    memory_dim: int = 4,
    heads: int = 1,
    input_feeding: bool = True,
) -> LuongRNN:
    torch.manual_seed(0)
    return LuongRNN(
        embedding=Token(vocab=7, dim=3),
        memory_dim=memory_dim,
        summary_dim=5,
        carry={"h": (layers, 4), "c": (layers, 4)},
        attention=Blueprint.of(
            Attention, scorer=SCORERS[scorer], align=Blueprint.of(Soft), heads=heads
        ),
        hidden=4,
        cell=cell,
        layers=layers,
        init=init,
        input_feeding=input_feeding,
    )


def memory(layers: int = 1, dtype: torch.dtype = torch.float32, memory_dim: int = 4) -> Memory:
    """Four items, one of a single step and one with nothing real in it."""
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    return Memory(
        states=draw(4, 4, memory_dim),
        mask=torch.arange(4)[None] < torch.tensor(LENGTHS)[:, None],
        summary=draw(4, 5),
        carry={"h": draw(4, layers, 4), "c": draw(4, layers, 4)},
    )


@pytest.mark.parametrize("input_feeding", [True, False])
def test_two_steps_of_known_weights(input_feeding):
    decoder = LuongRNN(
        embedding=Token(vocab=3, dim=1),
        memory_dim=1,
        summary_dim=1,
        carry={},
        attention=Blueprint.of(Attention, scorer=Blueprint.of(Dot), align=Blueprint.of(Soft)),
        hidden=1,
        cell="rnn",
        init="zeros",
        input_feeding=input_feeding,
    ).double()
    # The cell reads [y; fed], or y alone.
    read = torch.tensor([[1.0, 0.75]]) if input_feeding else torch.tensor([[1.0]])
    decoder.load_state_dict(
        {
            "embedding.table.weight": torch.tensor([[0.0], [0.5], [-2.0]]),
            "cells.cells.0.weight_ih": read,
            "cells.cells.0.weight_hh": torch.tensor([[2.0]]),
            "cells.cells.0.bias_ih": torch.tensor([0.125]),
            "cells.cells.0.bias_hh": torch.tensor([-0.25]),
            # W_c reads [c; s].
            "combine.weight": torch.tensor([[0.25, -0.5]]),
            "out.weight": torch.tensor([[1.0], [-1.0], [3.0]]),
            "out.bias": torch.tensor([0.0, 0.5, -0.25]),
        }
    )
    states = torch.tensor([[[1.0], [3.0], [50.0]]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False]])

    logits = decoder(torch.tensor([[1, 2]]), Memory(states, mask, states[:, 0]))

    def look(s: float) -> float:
        # Two real keys, 1 and 3, with scores s * 1 and s * 3.
        return (math.exp(s) * 1 + math.exp(3 * s) * 3) / (math.exp(s) + math.exp(3 * s))

    s1 = math.tanh(0.5 + 0.125 - 0.25)
    h1 = math.tanh(0.25 * look(s1) - 0.5 * s1)
    fed = 0.75 * h1 if input_feeding else 0
    s2 = math.tanh(-2 + fed + 2 * s1 + 0.125 - 0.25)
    h2 = math.tanh(0.25 * look(s2) - 0.5 * s2)
    expected = torch.tensor(
        [[[h1, -h1 + 0.5, 3 * h1 - 0.25], [h2, -h2 + 0.5, 3 * h2 - 0.25]]], dtype=torch.float64
    )
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_logits_equal_the_papers_formula_item_by_item(cell, layers, input_feeding, reference_stack):
    decoder = build("general", cell, layers, "copy", 6, input_feeding=input_feeding).double()
    given = memory(layers, torch.float64, memory_dim=6)
    weights = {key: value.numpy() for key, value in decoder.state_dict().items()}
    W = weights["attention.scorers.0.W.weight"]

    logits = decoder(TOKENS, given).detach()

    for item, length in enumerate(LENGTHS):
        source = given.states[item, :length].numpy()
        parts = ("h", "c") if cell == "lstm" else ("h",)
        state = {part: given.carry[part][item].numpy() for part in parts}
        attentional = np.zeros(4)
        for t in range(5):
            y = weights["embedding.table.weight"][TOKENS[item, t]]
            x = np.concatenate([y, attentional]) if input_feeding else y
            state = reference_stack(cell, x, state, decoder.cells.cells)
            s = state["h"][-1]
            energies = [np.exp(s @ W @ h) for h in source]
            c = np.zeros(6)
            for energy, h in zip(energies, source, strict=True):
                c = c + energy / sum(energies) * h
            attentional = np.tanh(weights["combine.weight"] @ np.concatenate([c, s]))
            expected = weights["out.weight"] @ attentional + weights["out.bias"]
            np.testing.assert_allclose(logits[item, t], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("scorer", SCORERS)
def test_an_item_with_nothing_real_gives_finite_logits_and_gradients(scorer):
    decoder, given = build(scorer), memory()
    states = given.states.requires_grad_()

    logits = decoder(TOKENS, given)
    logits.square().sum().backward()

    assert logits.isfinite().all()
    assert states.grad.isfinite().all()
    assert torch.count_nonzero(states.grad[~given.mask]) == 0


def test_a_step_leaves_the_state_it_was_given_as_it_was():
    decoder, given = build(), memory()
    state = decoder.start(given, steps=2)
    before = {key: value.clone() for key, value in state.per_hypothesis.items()}

    first, _ = decoder.step(TOKENS[:, :1], state)
    again, _ = decoder.step(TOKENS[:, :1], state)

    assert torch.equal(first, again)
    assert list(before) == list(state.per_hypothesis) == ["h", "c", "fed"]
    for key, value in state.per_hypothesis.items():
        assert torch.equal(value, before[key])


def test_each_step_looks_once_with_weights_over_the_real_positions():
    decoder, given = build(), memory()

    with recording(decoder) as log:
        decoder(TOKENS, given)

    assert list(log) == ["attention"]
    assert len(log["attention"]) == 5
    for weights in log["attention"]:
        assert weights.shape == (4, 1, 1, 4)
        assert torch.equal(weights[:, 0, 0] > 0, given.mask)


def test_a_copy_from_an_encoder_of_another_form_is_refused():
    message = (
        "^init: copy needs an encoder of the same form, but it ends in 2 layers of width 4 "
        "and this decoder has 1 of 4; use init: bridge$"
    )
    with pytest.raises(ZooError, match=message):
        LuongRNN(
            embedding=Token(vocab=7, dim=3),
            memory_dim=4,
            summary_dim=4,
            carry={"h": (2, 4), "c": (2, 4)},
            attention=Blueprint.of(Attention, scorer=SCORERS["dot"], align=Blueprint.of(Soft)),
            hidden=4,
            init="copy",
        )


def test_its_weights_are_named():
    decoder = build("general", "lstm", layers=2, memory_dim=6)

    assert {key: tuple(value.shape) for key, value in decoder.state_dict().items()} == {
        "embedding.table.weight": (7, 3),
        "initial.bridge.weight": (8, 5),
        "initial.bridge.bias": (8,),
        "cells.cells.0.weight_ih": (16, 7),
        "cells.cells.0.weight_hh": (16, 4),
        "cells.cells.0.bias_ih": (16,),
        "cells.cells.0.bias_hh": (16,),
        "cells.cells.1.weight_ih": (16, 4),
        "cells.cells.1.weight_hh": (16, 4),
        "cells.cells.1.bias_ih": (16,),
        "cells.cells.1.bias_hh": (16,),
        "attention.scorers.0.W.weight": (4, 6),
        "combine.weight": (4, 10),
        "out.weight": (7, 4),
        "out.bias": (7,),
    }
