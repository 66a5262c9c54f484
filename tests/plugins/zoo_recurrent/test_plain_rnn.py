import math

import numpy as np
import pytest
import torch
from torch import nn

from zoo import ZooError
from zoo.plugin import Memory
from zoo_recurrent.plain_rnn import PlainRNN
from zoo_tokens.token import Token

CELLS = ["rnn", "lstm", "gru", "gru-cho"]
TOKENS = torch.tensor([[1, 4, 2, 6, 3], [5, 5, 1, 2, 0], [3, 6, 4, 1, 1]])


def build(cell: str = "lstm", layers: int = 1, init: str = "bridge") -> PlainRNN:
    torch.manual_seed(0)
    return PlainRNN(
        embedding=Token(vocab=7, dim=3),
        summary_dim=5,
        carry={"h": (layers, 4), "c": (layers, 4)},
        hidden=4,
        cell=cell,
        layers=layers,
        init=init,
    )


def memory(layers: int = 1, dtype: torch.dtype = torch.float32) -> Memory:
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    return Memory(
        states=draw(3, 4, 5),
        mask=torch.arange(4)[None] < torch.tensor([4, 1, 2])[:, None],
        summary=draw(3, 5),
        carry={"h": draw(3, layers, 4), "c": draw(3, layers, 4)},
    )


def test_two_steps_of_known_weights():
    decoder = PlainRNN(
        embedding=Token(vocab=3, dim=1), summary_dim=1, carry={}, hidden=1, cell="rnn"
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
@pytest.mark.parametrize(("cell", "torchs"), [("rnn", nn.RNN), ("lstm", nn.LSTM), ("gru", nn.GRU)])
def test_logits_equal_torchs_layers_started_in_the_encoders_last_state(cell, torch_cls, layers):
    decoder = build(cell, layers, init="copy").double()
    other = torch_cls(3, 4, layers, batch_first=True).double()
    other.load_state_dict(
        {
            f"{name}_l{layer}": getattr(one, name)
            for layer, one in enumerate(decoder.cells.cells)
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }
    )
    given = memory(layers, torch.float64)
    h, c = (given.carry[part].transpose(0, 1).contiguous() for part in ("h", "c"))

    states, _ = other(decoder.embedding(TOKENS), (h, c) if cell == "lstm" else h)

    torch.testing.assert_close(decoder(TOKENS, given), decoder.out(states), rtol=0, atol=1e-10)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_logits_equal_the_formula_after_a_bridge(cell, layers, reference_stack):
    decoder = build(cell, layers).double()
    given = memory(layers, torch.float64)
    weights = {key: value.numpy() for key, value in decoder.state_dict().items()}

    logits = decoder(TOKENS, given).detach()

    for item in range(3):
        raw = weights["initial.bridge.weight"] @ given.summary[item].numpy()
        state = {"h": np.tanh(raw + weights["initial.bridge.bias"]).reshape(layers, 4)}
        if cell == "lstm":
            state["c"] = np.zeros((layers, 4))
        for t in range(5):
            y = weights["embedding.table.weight"][TOKENS[item, t]]
            state = reference_stack(cell, y, state, decoder.cells.cells)
            expected = weights["out.weight"] @ state["h"][-1] + weights["out.bias"]
            np.testing.assert_allclose(logits[item, t], expected, rtol=0, atol=1e-10)


def test_the_source_is_known_by_its_summary_alone():
    decoder, given = build(), memory()

    changed = Memory(given.states + 100, ~given.mask, given.summary, given.carry)
    other = Memory(given.states, given.mask, given.summary + 1, given.carry)

    assert torch.equal(decoder(TOKENS, changed), decoder(TOKENS, given))
    assert not torch.equal(decoder(TOKENS, other), decoder(TOKENS, given))


def test_a_copy_from_an_encoder_of_another_form_is_refused():
    message = (
        "^init: copy needs an encoder of the same form, but it ends in 1 layers of width 8 "
        "and this decoder has 1 of 4; use init: bridge$"
    )
    with pytest.raises(ZooError, match=message):
        PlainRNN(
            embedding=Token(vocab=7, dim=3),
            summary_dim=8,
            carry={"h": (1, 8), "c": (1, 8)},
            hidden=4,
            init="copy",
        )


def test_its_weights_are_named():
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
