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
from zoo_recurrent.attentive_rnn import AttentiveRNN
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
    scorer: str = "additive",
    cell: str = "gru",
    layers: int = 1,
    init: str = "bridge",
    memory_dim: int = 4,
    heads: int = 1,
    readout: int | None = None,
) -> AttentiveRNN:
    torch.manual_seed(0)
    return AttentiveRNN(
        embedding=Token(vocab=7, dim=3),
        memory_dim=memory_dim,
        summary_dim=5,
        carry={"h": (layers, 4), "c": (layers, 4)},
        attention=Blueprint.of(
            Attention, scorer=SCORERS[scorer], align=Blueprint.of(Soft), heads=heads
        ),
        hidden=4,
        readout=readout,
        cell=cell,
        layers=layers,
        init=init,
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


def test_two_steps_of_known_weights():
    decoder = AttentiveRNN(
        embedding=Token(vocab=3, dim=1),
        memory_dim=1,
        summary_dim=1,
        carry={},
        attention=Blueprint.of(Attention, scorer=Blueprint.of(Dot), align=Blueprint.of(Soft)),
        hidden=1,
        readout=1,
        cell="rnn",
        init="zeros",
    ).double()
    decoder.load_state_dict(
        {
            "embedding.table.weight": torch.tensor([[0.0], [0.5], [-2.0]]),
            # The cell reads [y; c].
            "cells.cells.0.weight_ih": torch.tensor([[1.0, 0.25]]),
            "cells.cells.0.weight_hh": torch.tensor([[2.0]]),
            "cells.cells.0.bias_ih": torch.tensor([0.125]),
            "cells.cells.0.bias_hh": torch.tensor([-0.25]),
            # The readout reads [s; y; c] into two pieces, of which the larger speaks.
            "readout.weight": torch.tensor([[1.0, 2.0, 0.5], [-3.0, 0.5, 0.25]]),
            "readout.bias": torch.tensor([0.0, 0.5]),
            "out.weight": torch.tensor([[1.0], [-1.0], [3.0]]),
            "out.bias": torch.tensor([0.0, 0.5, -0.25]),
        }
    )
    states = torch.tensor([[[1.0], [3.0], [50.0]]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False]])

    logits = decoder(torch.tensor([[1, 2]]), Memory(states, mask, states[:, 0]))

    # The first state is 0, so the two real keys 1 and 3 score alike.
    c1 = (1 + 3) / 2
    s1 = math.tanh(0.5 + 0.25 * c1 + 0.125 - 0.25)
    m1 = max(s1 + 2 * 0.5 + 0.5 * c1, -3 * s1 + 0.5 * 0.5 + 0.25 * c1 + 0.5)
    # Then s1 asks: the scores are s1 * 1 and s1 * 3.
    c2 = (math.exp(s1) * 1 + math.exp(3 * s1) * 3) / (math.exp(s1) + math.exp(3 * s1))
    s2 = math.tanh(-2 + 0.25 * c2 + 2 * s1 + 0.125 - 0.25)
    m2 = max(s2 + 2 * -2 + 0.5 * c2, -3 * s2 + 0.5 * -2 + 0.25 * c2 + 0.5)
    expected = torch.tensor(
        [[[m1, -m1 + 0.5, 3 * m1 - 0.25], [m2, -m2 + 0.5, 3 * m2 - 0.25]]], dtype=torch.float64
    )
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_logits_equal_the_papers_formula_item_by_item(cell, layers, reference_stack):
    decoder = build("additive", cell, layers, memory_dim=6, readout=3).double()
    given = memory(layers, torch.float64, memory_dim=6)
    weights = {key: value.numpy() for key, value in decoder.state_dict().items()}
    W, U, v = (weights[f"attention.scorers.0.{name}"] for name in ("W.weight", "U.weight", "v"))

    logits = decoder(TOKENS, given).detach()

    for item, length in enumerate(LENGTHS):
        annotations = given.states[item, :length].numpy()
        raw = weights["initial.bridge.weight"] @ given.summary[item].numpy()
        state = {"h": np.tanh(raw + weights["initial.bridge.bias"]).reshape(layers, 4)}
        if cell == "lstm":
            state["c"] = np.zeros((layers, 4))
        for t in range(5):
            y = weights["embedding.table.weight"][TOKENS[item, t]]
            before = state["h"][-1]
            energies = [np.exp(v @ np.tanh(W @ before + U @ h)) for h in annotations]
            c = np.zeros(6)
            for energy, h in zip(energies, annotations, strict=True):
                c = c + energy / sum(energies) * h
            state = reference_stack(cell, np.concatenate([y, c]), state, decoder.cells.cells)
            seen = np.concatenate([state["h"][-1], y, c])
            pieces = weights["readout.weight"] @ seen + weights["readout.bias"]
            maxout = [max(pieces[2 * j], pieces[2 * j + 1]) for j in range(3)]
            expected = weights["out.weight"] @ maxout + weights["out.bias"]
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


def test_each_step_looks_once_with_weights_over_the_real_positions():
    decoder, given = build(), memory()

    with recording(decoder) as log:
        decoder(TOKENS, given)

    assert list(log) == ["attention"]
    assert len(log["attention"]) == 5
    for weights in log["attention"]:
        assert weights.shape == (4, 1, 1, 4)
        assert torch.equal(weights[:, 0, 0] > 0, given.mask)


def test_the_readout_is_half_as_wide_as_the_state_unless_told_otherwise():
    assert build().out.in_features == 2
    assert build(readout=5).out.in_features == 5


def test_a_copy_from_an_encoder_of_another_cell_is_refused():
    message = (
        "^init: copy needs the encoder's state 'c' for cell 'lstm', but the encoder carries none; "
        "use init: bridge, or an encoder of the same cell$"
    )
    with pytest.raises(ZooError, match=message):
        AttentiveRNN(
            embedding=Token(vocab=7, dim=3),
            memory_dim=4,
            summary_dim=4,
            carry={"h": (1, 4)},
            attention=Blueprint.of(Attention, scorer=SCORERS["dot"], align=Blueprint.of(Soft)),
            hidden=4,
            cell="lstm",
            init="copy",
        )


def test_its_weights_are_named():
    decoder = build("additive", "gru", layers=2, memory_dim=6)

    assert {key: tuple(value.shape) for key, value in decoder.state_dict().items()} == {
        "embedding.table.weight": (7, 3),
        "initial.bridge.weight": (8, 5),
        "initial.bridge.bias": (8,),
        "attention.scorers.0.v": (3,),
        "attention.scorers.0.W.weight": (3, 4),
        "attention.scorers.0.U.weight": (3, 6),
        "cells.cells.0.weight_ih": (12, 9),
        "cells.cells.0.weight_hh": (12, 4),
        "cells.cells.0.bias_ih": (12,),
        "cells.cells.0.bias_hh": (12,),
        "cells.cells.1.weight_ih": (12, 4),
        "cells.cells.1.weight_hh": (12, 4),
        "cells.cells.1.bias_ih": (12,),
        "cells.cells.1.bias_hh": (12,),
        "readout.weight": (4, 13),
        "readout.bias": (4,),
        "out.weight": (7, 2),
        "out.bias": (7,),
    }
