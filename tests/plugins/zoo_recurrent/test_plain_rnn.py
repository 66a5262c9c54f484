import math

import numpy as np
import pytest
import torch
from torch import nn

from zoo import ZooError
from zoo.plugin import Memory
from zoo_recurrent.plain_rnn import PlainRNN
from zoo_recurrent.recurrence import Recurrence
from zoo_tokens.token import Token

CELLS = ["rnn", "lstm", "gru", "gru-cho"]


def build(cell: str = "lstm", layers: int = 1, init: str = "bridge") -> PlainRNN:
    torch.manual_seed(0)
    return PlainRNN(
        embedding=Token(vocab=7, dim=3),
        summary_dim=5,
        carry={"h": (layers, 4), "c": (layers, 4)},
        recurrence=Recurrence(hidden=4, layers=layers, init=init),
        cell=cell,
    )


def test_two_steps_of_known_weights():
    decoder = PlainRNN(
        embedding=Token(vocab=3, dim=1),
        summary_dim=1,
        carry={},
        recurrence=Recurrence(hidden=1),
        cell="rnn",
    ).double()
    decoder.load_state_dict(
        {
            "embedding.table.weight": torch.tensor([[0.0], [1.0], [-2.0]]),
            "initial.bridge.weight": torch.tensor([[0.5]]),
            "initial.bridge.bias": torch.tensor([0.25]),
            "cells.cells.0.weight_ih": torch.tensor([[0.5]]),
            "cells.cells.0.weight_hh": torch.tensor([[2.0]]),
            "cells.cells.0.bias_ih": torch.tensor([0.125]),
            "cells.cells.0.bias_hh": torch.tensor([-0.5]),
            "out.weight": torch.tensor([[1.0], [-1.0], [3.0]]),
            "out.bias": torch.tensor([0.0, 0.5, -0.25]),
        }
    )
    summary = torch.tensor([[1.5]], dtype=torch.float64)

    logits = decoder(
        torch.tensor([[1, 2]]),
        Memory(summary[:, None], torch.ones(1, 1, dtype=torch.bool), summary),
    )

    s0 = math.tanh(0.5 * 1.5 + 0.25)
    s1 = math.tanh(0.5 * 1 + 0.125 + 2 * s0 - 0.5)
    s2 = math.tanh(0.5 * -2 + 0.125 + 2 * s1 - 0.5)
    expected = torch.tensor(
        [[[s1, -s1 + 0.5, 3 * s1 - 0.25], [s2, -s2 + 0.5, 3 * s2 - 0.25]]], dtype=torch.float64
    )
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(
    ("cell", "torch_cls"), [("rnn", nn.RNN), ("lstm", nn.LSTM), ("gru", nn.GRU)]
)
def test_logits_match_torch_from_the_final_state_of_the_encoder(
    cell, torch_cls, layers, tokens, make_memory
):
    decoder = build(cell, layers, init="copy").double()
    other = torch_cls(3, 4, layers, batch_first=True).double()
    other.load_state_dict(
        {
            f"{name}_l{layer}": getattr(module, name)
            for layer, module in enumerate(decoder.cells.cells)
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }
    )
    source = make_memory(layers)
    h, c = (source.carry[name].transpose(0, 1).contiguous() for name in ("h", "c"))

    states, _ = other(decoder.embedding(tokens), (h, c) if cell == "lstm" else h)

    torch.testing.assert_close(decoder(tokens, source), decoder.out(states), rtol=0, atol=1e-10)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_logits_match_the_formula_with_a_bridge(cell, layers, reference_stack, tokens, make_memory):
    decoder = build(cell, layers).double()
    source = make_memory(layers)
    weights = {key: value.numpy() for key, value in decoder.state_dict().items()}

    logits = decoder(tokens, source).detach()

    for item in range(4):
        bridge = weights["initial.bridge.weight"] @ source.summary[item].numpy()
        state = {"h": np.tanh(bridge + weights["initial.bridge.bias"]).reshape(layers, 4)}
        if cell == "lstm":
            state["c"] = np.zeros((layers, 4))
        for t in range(5):
            y = weights["embedding.table.weight"][tokens[item, t]]
            state = reference_stack(cell, y, state, decoder.cells.cells)
            expected = weights["out.weight"] @ state["h"][-1] + weights["out.bias"]
            np.testing.assert_allclose(logits[item, t], expected, rtol=0, atol=1e-10)


def test_only_the_summary_of_the_source_is_used(tokens, make_memory):
    decoder, source = build(), make_memory(dtype=torch.float32)

    changed = Memory(source.states + 100, ~source.mask, source.summary, source.carry)
    other = Memory(source.states, source.mask, source.summary + 1, source.carry)

    assert torch.equal(decoder(tokens, changed), decoder(tokens, source))
    assert not torch.equal(decoder(tokens, other), decoder(tokens, source))


def test_parameter_names():
    decoder = build("lstm", layers=2)

    assert {key: tuple(value.shape) for key, value in decoder.state_dict().items()} == {
        "embedding.table.weight": (7, 3),
        "initial.bridge.weight": (8, 5),
        "initial.bridge.bias": (8,),
        "cells.cells.0.weight_ih": (16, 3),
        "cells.cells.0.weight_hh": (16, 4),
        "cells.cells.0.bias_ih": (16,),
        "cells.cells.0.bias_hh": (16,),
        "cells.cells.1.weight_ih": (16, 4),
        "cells.cells.1.weight_hh": (16, 4),
        "cells.cells.1.bias_ih": (16,),
        "cells.cells.1.bias_hh": (16,),
        "out.weight": (7, 4),
        "out.bias": (7,),
    }


def test_tied_logits_are_inner_products_with_the_embedding():
    token = Token(vocab=7, dim=4)
    decoder = PlainRNN(
        embedding=token,
        summary_dim=0,
        carry={},
        recurrence=Recurrence(hidden=4, init="zeros"),
        tied=True,
    )
    assert not any(name.startswith("out.") for name in decoder.state_dict())
    features = torch.randn(2, 3, 4)
    torch.testing.assert_close(decoder.logits(features, {}), features @ token.table.weight.T)
    with pytest.raises(ZooError, match="hidden is 5, dim is 4"):
        PlainRNN(
            embedding=token,
            summary_dim=0,
            carry={},
            recurrence=Recurrence(hidden=5, init="zeros"),
            tied=True,
        )
