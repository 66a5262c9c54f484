import math

import pytest
import torch

from zoo import ZooError
from zoo.plugin import Memory
from zoo_recurrent.initial_state import InitialState


def memory(B: int = 3, carry: dict[str, torch.Tensor] | None = None) -> Memory:
    generator = torch.Generator().manual_seed(0)
    return Memory(
        states=torch.randn(B, 4, 5, generator=generator, dtype=torch.float64),
        mask=torch.ones(B, 4, dtype=torch.bool),
        summary=torch.randn(B, 5, generator=generator, dtype=torch.float64),
        carry=carry or {},
    )


def test_a_bridge_of_known_weights():
    initial = InitialState("bridge", "gru", layers=2, hidden=1, summary_dim=2, carry={}).double()
    initial.load_state_dict(
        {
            "bridge.weight": torch.tensor([[1.0, 2.0], [-1.0, 0.5]]),
            "bridge.bias": torch.tensor([0.25, -0.5]),
        }
    )
    summary = torch.tensor([[0.3, 0.4]], dtype=torch.float64)

    state = initial(Memory(summary[:, None], torch.ones(1, 1, dtype=torch.bool), summary))

    # One row of the bridge a layer.
    lower = math.tanh(0.3 + 2 * 0.4 + 0.25)
    upper = math.tanh(-0.3 + 0.5 * 0.4 - 0.5)
    assert list(state) == ["h"]
    torch.testing.assert_close(
        state["h"], torch.tensor([[[lower], [upper]]], dtype=torch.float64), rtol=0, atol=1e-12
    )


def test_a_bridge_equals_the_formula_written_as_loops():
    torch.manual_seed(0)
    initial = InitialState("bridge", "lstm", layers=2, hidden=4, summary_dim=5, carry={}).double()
    given = memory()
    W, b = initial.bridge.weight.tolist(), initial.bridge.bias.tolist()

    state = initial(given)

    assert state["h"].shape == state["c"].shape == (3, 2, 4)
    assert torch.count_nonzero(state["c"]) == 0
    for item in range(3):
        summary = given.summary[item].tolist()
        for layer in range(2):
            for unit in range(4):
                row = layer * 4 + unit
                expected = math.tanh(sum(W[row][d] * summary[d] for d in range(5)) + b[row])
                assert abs(state["h"][item, layer, unit].item() - expected) < 1e-12


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
def test_a_copy_goes_on_where_the_encoder_stopped(cell):
    carry = {part: torch.randn(3, 2, 4, dtype=torch.float64) for part in ("h", "c")}
    form = dict.fromkeys(carry, (2, 4))
    initial = InitialState("copy", cell, layers=2, hidden=4, summary_dim=5, carry=form)

    state = initial(memory(carry=carry))

    assert list(state) == (["h", "c"] if cell == "lstm" else ["h"])
    for part, value in state.items():
        assert torch.equal(value, carry[part])


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_zeros_start_from_nothing(cell):
    initial = InitialState("zeros", cell, layers=2, hidden=4, summary_dim=5, carry={})

    state = initial(memory())

    assert list(state) == (["h", "c"] if cell == "lstm" else ["h"])
    for value in state.values():
        assert value.shape == (3, 2, 4)
        assert torch.count_nonzero(value) == 0


@pytest.mark.parametrize("form", [(1, 4), (2, 8)])
def test_a_copy_from_an_encoder_of_another_form_is_refused(form):
    message = (
        f"^init: copy needs an encoder of the same form, but it ends in {form[0]} layers of width "
        f"{form[1]} and this decoder has 2 of 4; use init: bridge$"
    )
    with pytest.raises(ZooError, match=message):
        InitialState("copy", "gru", layers=2, hidden=4, summary_dim=5, carry={"h": form})


def test_a_copy_from_an_encoder_of_another_cell_is_refused():
    message = (
        "^init: copy needs the encoder's state 'c' for cell 'lstm', but the encoder carries none; "
        "use init: bridge, or an encoder of the same cell$"
    )
    with pytest.raises(ZooError, match=message):
        InitialState("copy", "lstm", layers=2, hidden=4, summary_dim=5, carry={"h": (2, 4)})


def test_its_weights_are_named():
    def names(init: str) -> dict[str, tuple[int, ...]]:
        initial = InitialState(init, "gru", layers=2, hidden=4, summary_dim=5, carry={"h": (2, 4)})
        return {key: tuple(value.shape) for key, value in initial.state_dict().items()}

    assert names("bridge") == {"bridge.weight": (8, 5), "bridge.bias": (8,)}
    assert names("copy") == names("zeros") == {}
