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


def test_bridge_of_known_weights():
    initial = InitialState("bridge", "gru", layers=2, hidden=1, summary_dim=2, carry={}).double()
    initial.load_state_dict(
        {
            "bridge.weight": torch.tensor([[1.0, 2.0], [-1.0, 0.5]]),
            "bridge.bias": torch.tensor([0.25, -0.5]),
        }
    )
    summary = torch.tensor([[0.3, 0.4]], dtype=torch.float64)

    state = initial(Memory(summary[:, None], torch.ones(1, 1, dtype=torch.bool), summary))

    # One row of the bridge for each layer.
    lower = math.tanh(0.3 + 2 * 0.4 + 0.25)
    upper = math.tanh(-0.3 + 0.5 * 0.4 - 0.5)
    assert list(state) == ["h"]
    torch.testing.assert_close(
        state["h"], torch.tensor([[[lower], [upper]]], dtype=torch.float64), rtol=0, atol=1e-12
    )


def test_bridge_matches_the_formula_item_by_item():
    torch.manual_seed(0)
    initial = InitialState("bridge", "lstm", layers=2, hidden=4, summary_dim=5, carry={}).double()
    source = memory()
    W, b = initial.bridge.weight.tolist(), initial.bridge.bias.tolist()

    state = initial(source)

    assert state["h"].shape == state["c"].shape == (3, 2, 4)
    assert torch.count_nonzero(state["c"]) == 0
    for item in range(3):
        summary = source.summary[item].tolist()
        for layer in range(2):
            for unit in range(4):
                row = layer * 4 + unit
                expected = math.tanh(sum(W[row][d] * summary[d] for d in range(5)) + b[row])
                assert abs(state["h"][item, layer, unit].item() - expected) < 1e-12


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
def test_copy_returns_the_final_state_of_the_encoder(cell):
    carry = {name: torch.randn(3, 2, 4, dtype=torch.float64) for name in ("h", "c")}
    shapes = dict.fromkeys(carry, (2, 4))
    initial = InitialState("copy", cell, layers=2, hidden=4, summary_dim=5, carry=shapes)

    state = initial(memory(carry=carry))

    assert list(state) == (["h", "c"] if cell == "lstm" else ["h"])
    for name, value in state.items():
        assert torch.equal(value, carry[name])


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_zeros(cell):
    initial = InitialState("zeros", cell, layers=2, hidden=4, summary_dim=5, carry={})

    state = initial(memory())

    assert list(state) == (["h", "c"] if cell == "lstm" else ["h"])
    for value in state.values():
        assert value.shape == (3, 2, 4)
        assert torch.count_nonzero(value) == 0


@pytest.mark.parametrize("shape", [(1, 4), (2, 8)])
def test_copy_from_an_encoder_of_another_shape_raises(shape):
    layers, width = shape
    match = f"init: copy.*{layers} layers of width {width}.*2 of width 4.*init: bridge"
    with pytest.raises(ZooError, match=match):
        InitialState("copy", "gru", layers=2, hidden=4, summary_dim=5, carry={"h": shape})


def test_copy_from_an_encoder_with_another_cell_raises():
    with pytest.raises(ZooError, match=r"init: copy.*'c'.*'lstm'.*init: bridge"):
        InitialState("copy", "lstm", layers=2, hidden=4, summary_dim=5, carry={"h": (2, 4)})


def test_bridge_without_a_source_raises():
    with pytest.raises(ZooError, match=r"init: bridge.*init: zeros"):
        InitialState("bridge", "gru", layers=2, hidden=4, summary_dim=0, carry={})


def test_parameter_names():
    def names(init: str) -> dict[str, tuple[int, ...]]:
        initial = InitialState(init, "gru", layers=2, hidden=4, summary_dim=5, carry={"h": (2, 4)})
        return {key: tuple(value.shape) for key, value in initial.state_dict().items()}

    assert names("bridge") == {"bridge.weight": (8, 5), "bridge.bias": (8,)}
    assert names("copy") == names("zeros") == {}
