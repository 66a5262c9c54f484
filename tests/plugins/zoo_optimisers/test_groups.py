import pytest
from optimiser_kit import make_weights

from zoo_optimisers.groups import parameter_groups


@pytest.mark.parametrize(
    ("weight_decay", "decay", "expected"),
    [
        (0.1, "matrices", [(0.1, ["linear", "embedding"]), (0.0, ["bias", "norm", "vector"])]),
        (0.1, "all", [(0.1, ["linear", "bias", "embedding", "norm", "vector"])]),
        (0.0, "matrices", [(0.0, ["linear", "bias", "embedding", "norm", "vector"])]),
    ],
)
def test_groups_follow_from_the_roles(weight_decay, decay, expected):
    groups = parameter_groups(make_weights(), weight_decay, decay)
    assert [(g["weight_decay"], [name for name, _ in g["params"]]) for g in groups] == expected


def test_no_group_is_empty():
    linear, bias = make_weights()[:2]
    assert [g["weight_decay"] for g in parameter_groups([linear], 0.1, "matrices")] == [0.1]
    assert [g["weight_decay"] for g in parameter_groups([bias], 0.1, "matrices")] == [0.0]
