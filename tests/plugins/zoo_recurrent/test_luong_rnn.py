import math

import numpy as np
import pytest
import torch

from zoo.plugin import Attention, Blueprint, Memory
from zoo_alignment.soft import Soft
from zoo_luong.dot import Dot
from zoo_luong.general import General
from zoo_recurrent.luong_rnn import LuongRNN
from zoo_recurrent.recurrence import Recurrence
from zoo_tokens.token import Token

CELLS = ["rnn", "lstm", "gru", "gru-cho"]
LENGTHS = [4, 1, 2, 0]


def build(
    cell: str = "lstm",
    layers: int = 1,
    init: str = "bridge",
    memory_dim: int = 4,
    input_feeding: bool = True,
) -> LuongRNN:
    torch.manual_seed(0)
    return LuongRNN(
        embedding=Token(vocab=7, dim=3),
        memory_dim=memory_dim,
        summary_dim=5,
        carry={"h": (layers, 4), "c": (layers, 4)},
        attention=Blueprint.of(Attention, scorer=Blueprint.of(General), align=Blueprint.of(Soft)),
        recurrence=Recurrence(hidden=4, layers=layers, init=init),
        cell=cell,
        input_feeding=input_feeding,
    )


@pytest.mark.parametrize("input_feeding", [True, False])
def test_two_steps_of_known_weights(input_feeding):
    decoder = LuongRNN(
        embedding=Token(vocab=3, dim=1),
        memory_dim=1,
        summary_dim=1,
        carry={},
        attention=Blueprint.of(Attention, scorer=Blueprint.of(Dot), align=Blueprint.of(Soft)),
        recurrence=Recurrence(hidden=1, init="zeros"),
        cell="rnn",
        input_feeding=input_feeding,
    ).double()
    # The input of the cell is [y; h̃], or y without input feeding.
    weight_ih = torch.tensor([[1.0, 0.75]]) if input_feeding else torch.tensor([[1.0]])
    decoder.load_state_dict(
        {
            "embedding.table.weight": torch.tensor([[0.0], [0.5], [-2.0]]),
            "cells.cells.0.weight_ih": weight_ih,
            "cells.cells.0.weight_hh": torch.tensor([[2.0]]),
            "cells.cells.0.bias_ih": torch.tensor([0.125]),
            "cells.cells.0.bias_hh": torch.tensor([-0.25]),
            # The input of W_c is [c; s].
            "combine.weight": torch.tensor([[0.25, -0.5]]),
            "out.weight": torch.tensor([[1.0], [-1.0], [3.0]]),
            "out.bias": torch.tensor([0.0, 0.5, -0.25]),
        }
    )
    states = torch.tensor([[[1.0], [3.0], [50.0]]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False]])

    logits = decoder(torch.tensor([[1, 2]]), Memory(states, mask, states[:, 0]))

    def context(s: float) -> float:
        # Two valid keys, 1 and 3, with scores s * 1 and s * 3.
        return (math.exp(s) * 1 + math.exp(3 * s) * 3) / (math.exp(s) + math.exp(3 * s))

    s1 = math.tanh(0.5 + 0.125 - 0.25)
    h1 = math.tanh(0.25 * context(s1) - 0.5 * s1)
    fed = 0.75 * h1 if input_feeding else 0
    s2 = math.tanh(-2 + fed + 2 * s1 + 0.125 - 0.25)
    h2 = math.tanh(0.25 * context(s2) - 0.5 * s2)
    expected = torch.tensor(
        [[[h1, -h1 + 0.5, 3 * h1 - 0.25], [h2, -h2 + 0.5, 3 * h2 - 0.25]]], dtype=torch.float64
    )
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_logits_match_the_formula_item_by_item(
    cell, layers, input_feeding, reference_stack, tokens, make_memory
):
    decoder = build(cell, layers, "copy", 6, input_feeding=input_feeding).double()
    source = make_memory(layers, memory_dim=6)
    weights = {key: value.numpy() for key, value in decoder.state_dict().items()}
    W = weights["attention.scorers.0.W.weight"]

    logits = decoder(tokens, source).detach()

    for item, length in enumerate(LENGTHS):
        keys = source.states[item, :length].numpy()
        names = ("h", "c") if cell == "lstm" else ("h",)
        state = {name: source.carry[name][item].numpy() for name in names}
        attentional = np.zeros(4)
        for t in range(5):
            y = weights["embedding.table.weight"][tokens[item, t]]
            x = np.concatenate([y, attentional]) if input_feeding else y
            state = reference_stack(cell, x, state, decoder.cells.cells)
            s = state["h"][-1]
            energies = [np.exp(s @ W @ h) for h in keys]
            c = np.zeros(6)
            for energy, h in zip(energies, keys, strict=True):
                c = c + energy / sum(energies) * h
            attentional = np.tanh(weights["combine.weight"] @ np.concatenate([c, s]))
            expected = weights["out.weight"] @ attentional + weights["out.bias"]
            np.testing.assert_allclose(logits[item, t], expected, rtol=0, atol=1e-10)


def test_parameter_names():
    decoder = build("lstm", layers=2, memory_dim=6)

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
