import math

import pytest
import torch

from zoo.plugin import AlignmentContext
from zoo_alignment.local_m import LocalM


def reference_local_m(scores, mask, first: int, D: int) -> list[list[float]]:
    """Softmax in the window around position t, counting valid keys only, for one item and head."""
    rows = []
    valid = [s for s in range(len(mask)) if mask[s]]
    for t, row in enumerate(scores):
        p = min(first + t, len(valid) - 1)
        window = [s for position, s in enumerate(valid) if abs(position - p) <= D]
        total = sum(math.exp(row[s]) for s in window)
        rows.append([math.exp(row[s]) / total if s in window else 0.0 for s in range(len(row))])
    return rows


def test_weights_have_known_values():
    scores = torch.log(torch.tensor([[1.0, 2, 3, 4]])).double().expand(6, -1)

    # Windows {0, 1}, {0, 1, 2}, {1, 2, 3}, then {2, 3}.
    expected = torch.tensor(
        [
            [1 / 3, 2 / 3, 0, 0],
            [1 / 6, 2 / 6, 3 / 6, 0],
            [0, 2 / 9, 3 / 9, 4 / 9],
            *[[0, 0, 3 / 7, 4 / 7]] * 3,
        ]
    ).double()
    torch.testing.assert_close(LocalM(D=1)(scores), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("D", [0, 1, 2, 10])
def test_weights_match_the_formula_as_loops(D):
    torch.manual_seed(0)
    scores = torch.randn(3, 2, 4, 6, dtype=torch.float64)
    mask = torch.tensor(
        [
            [True] * 6,
            [True, True, True, False, False, False],
            [False, True, False, True, True, True],
        ]
    )
    context = AlignmentContext(torch.zeros(3, 2, 4, 1), torch.tensor([0, 1, 2]))

    weights = LocalM(D=D)(scores, mask[:, None, None], context)

    for b in range(3):
        for h in range(2):
            expected = reference_local_m(scores[b, h].tolist(), mask[b].tolist(), b, D)
            torch.testing.assert_close(
                weights[b, h], torch.tensor(expected).double(), rtol=0, atol=1e-7
            )


def test_needs_the_step_index():
    assert LocalM.needs_step_index
    assert not LocalM.sequential


def test_state_dict_is_empty():
    assert list(LocalM().state_dict()) == []
