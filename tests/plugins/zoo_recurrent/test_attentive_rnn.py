import math

import numpy as np
import pytest
import torch

from zoo import ZooError
from zoo.plugin import Attention, Blueprint, Memory
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_luong.dot import Dot
from zoo_recurrent.attentive_rnn import AttentiveRNN
from zoo_recurrent.recurrence import Recurrence
from zoo_tokens.token import Token

CELLS = ["rnn", "lstm", "gru", "gru-cho"]
LENGTHS = [4, 1, 2, 0]


def build(
    cell: str = "gru",
    layers: int = 1,
    memory_dim: int = 4,
    readout: int | None = None,
    tied: bool = False,
) -> AttentiveRNN:
    torch.manual_seed(0)
    return AttentiveRNN(
        embedding=Token(vocab=7, dim=3),
        memory_dim=memory_dim,
        summary_dim=5,
        carry={"h": (layers, 4), "c": (layers, 4)},
        attention=Blueprint.of(
            Attention, scorer=Blueprint.of(Additive, hidden=3), align=Blueprint.of(Soft)
        ),
        recurrence=Recurrence(hidden=4, layers=layers),
        readout=readout,
        cell=cell,
        tied=tied,
    )


def test_two_steps_of_known_weights():
    decoder = AttentiveRNN(
        embedding=Token(vocab=3, dim=1),
        memory_dim=1,
        summary_dim=1,
        carry={},
        attention=Blueprint.of(Attention, scorer=Blueprint.of(Dot), align=Blueprint.of(Soft)),
        recurrence=Recurrence(hidden=1, init="zeros"),
        readout=1,
        cell="rnn",
    ).double()
    decoder.load_state_dict(
        {
            "embedding.table.weight": torch.tensor([[0.0], [0.5], [-2.0]]),
            # The input of the cell is [y; c].
            "cells.cells.0.weight_ih": torch.tensor([[1.0, 0.25]]),
            "cells.cells.0.weight_hh": torch.tensor([[2.0]]),
            "cells.cells.0.bias_ih": torch.tensor([0.125]),
            "cells.cells.0.bias_hh": torch.tensor([-0.25]),
            # The readout maps [s; y; c] to two values; maxout selects the larger.
            "readout.weight": torch.tensor([[1.0, 2.0, 0.5], [-3.0, 0.5, 0.25]]),
            "readout.bias": torch.tensor([0.0, 0.5]),
            "out.weight": torch.tensor([[1.0], [-1.0], [3.0]]),
            "out.bias": torch.tensor([0.0, 0.5, -0.25]),
        }
    )
    states = torch.tensor([[[1.0], [3.0], [50.0]]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False]])

    logits = decoder(torch.tensor([[1, 2]]), Memory(states, mask, states[:, 0]))

    # The initial state is 0, so the two valid keys 1 and 3 have equal scores.
    c1 = (1 + 3) / 2
    s1 = math.tanh(0.5 + 0.25 * c1 + 0.125 - 0.25)
    m1 = max(s1 + 2 * 0.5 + 0.5 * c1, -3 * s1 + 0.5 * 0.5 + 0.25 * c1 + 0.5)
    # With query s1 the scores are s1 * 1 and s1 * 3.
    c2 = (math.exp(s1) * 1 + math.exp(3 * s1) * 3) / (math.exp(s1) + math.exp(3 * s1))
    s2 = math.tanh(-2 + 0.25 * c2 + 2 * s1 + 0.125 - 0.25)
    m2 = max(s2 + 2 * -2 + 0.5 * c2, -3 * s2 + 0.5 * -2 + 0.25 * c2 + 0.5)
    expected = torch.tensor(
        [[[m1, -m1 + 0.5, 3 * m1 - 0.25], [m2, -m2 + 0.5, 3 * m2 - 0.25]]], dtype=torch.float64
    )
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_logits_match_the_formula_item_by_item(cell, layers, reference_stack, tokens, make_memory):
    decoder = build(cell, layers, memory_dim=6, readout=3).double()
    source = make_memory(layers, memory_dim=6)
    weights = {key: value.numpy() for key, value in decoder.state_dict().items()}
    W, U, v = (weights[f"attention.scorers.0.{name}"] for name in ("W.weight", "U.weight", "v"))

    logits = decoder(tokens, source).detach()

    for item, length in enumerate(LENGTHS):
        annotations = source.states[item, :length].numpy()
        bridge = weights["initial.bridge.weight"] @ source.summary[item].numpy()
        state = {"h": np.tanh(bridge + weights["initial.bridge.bias"]).reshape(layers, 4)}
        if cell == "lstm":
            state["c"] = np.zeros((layers, 4))
        for t in range(5):
            y = weights["embedding.table.weight"][tokens[item, t]]
            query = state["h"][-1]
            energies = [np.exp(v @ np.tanh(W @ query + U @ h)) for h in annotations]
            c = np.zeros(6)
            for energy, h in zip(energies, annotations, strict=True):
                c = c + energy / sum(energies) * h
            state = reference_stack(cell, np.concatenate([y, c]), state, decoder.cells.cells)
            features = np.concatenate([state["h"][-1], y, c])
            pieces = weights["readout.weight"] @ features + weights["readout.bias"]
            maxout = [max(pieces[2 * j], pieces[2 * j + 1]) for j in range(3)]
            expected = weights["out.weight"] @ maxout + weights["out.bias"]
            np.testing.assert_allclose(logits[item, t], expected, rtol=0, atol=1e-10)


def test_readout_defaults_to_half_of_hidden():
    assert build().out.in_features == 2
    assert build(readout=5).out.in_features == 5


def test_parameter_names():
    decoder = build("gru", layers=2, memory_dim=6)

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


def test_tied_logits_are_inner_products_of_the_readout_with_the_embedding():
    decoder = build(readout=3, tied=True)
    assert not any(name.startswith("out.") for name in decoder.state_dict())
    features = torch.randn(2, 5, 4 + 3 + 4)
    readout = decoder.output_features(features)
    expected = readout @ decoder.embedding.table.weight.T
    torch.testing.assert_close(decoder.logits(features, {}), expected)
    with pytest.raises(ZooError, match="readout is 2, dim is 3"):
        build(readout=2, tied=True)
