import math

import pytest
import torch

from zoo import ZooError
from zoo_positions.t5 import T5

CPU = torch.device("cpu")


def bucket_by_hand(relative: int, causal: bool, buckets: int, max_distance: int) -> int:
    """Compute the bucket of a relative position (key - query) in float64."""
    first = 0
    if causal:
        distance = max(-relative, 0)
    else:
        buckets //= 2
        first = buckets if relative > 0 else 0
        distance = abs(relative)
    near = buckets // 2
    if distance < near:
        return first + distance
    position = math.log(distance / near) / math.log(max_distance / near) * (buckets - near)
    # At bucket boundaries, the result must not depend on rounding errors of the logarithms.
    return first + min(near + math.floor(position + 1e-6), buckets - 1)


def buckets_of(position: T5, T: int, S: int, offset: int | torch.Tensor = 0) -> torch.Tensor:
    """Return the bucket of each pair, using a table whose rows are their index."""
    with torch.no_grad():
        position.table.weight.copy_(torch.arange(position.buckets)[:, None].expand(-1, 2))
        return position.bias(T, S, offset=offset, device=CPU)[0].long()


def test_causal_buckets_have_known_values():
    position = T5(heads=2, causal=True, buckets=8, max_distance=16)

    # Distances 0..3 have their own bucket; then 4 + 4 log(d / 4) / log(16 / 4): bucket 5 from 5.7,
    # 6 from 8 and 7 from 11.3.
    buckets = buckets_of(position, 1, 22, offset=20)[0]

    by_distance = buckets.flip(0)[1:].tolist()  # the first is a later key
    assert buckets[21] == 0
    assert by_distance == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7]


def test_bidirectional_buckets_have_known_values():
    position = T5(heads=2, causal=False, buckets=8, max_distance=16)

    # Four per side: distances 0 and 1, then 2 + 2 log(d / 2) / log(16 / 2): bucket 3 from 5.7.
    buckets = buckets_of(position, 1, 13, offset=6)[0]

    assert buckets.tolist() == [3, 2, 2, 2, 2, 1, 0, 5, 6, 6, 6, 6, 7]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("buckets", "max_distance"), [(32, 128), (8, 20), (4, 8), (10, 64), (7, 9)]
)
def test_buckets_match_the_formula_as_loops(causal, buckets, max_distance):
    position = T5(heads=2, causal=causal, buckets=buckets, max_distance=max_distance)

    actual = buckets_of(position, 300, 300)

    for t in range(300):
        for s in range(0, 300, 1 if t in (0, 150, 299) else 37):
            assert actual[t, s] == bucket_by_hand(s - t, causal, buckets, max_distance), (t, s)


@pytest.mark.parametrize("offset", [4, torch.tensor(4)])
@pytest.mark.parametrize("causal", [True, False])
def test_bias_at_an_offset_is_a_slice(causal, offset):
    torch.manual_seed(0)
    position = T5(heads=3, causal=causal)

    later = position.bias(3, 9, offset=offset, device=CPU)

    assert torch.equal(later, position.bias(7, 9, device=CPU)[:, 4:])


def test_each_head_has_its_own_bias_per_bucket():
    position = T5(heads=2, causal=True, buckets=4)
    position.load_state_dict({"table.weight": torch.tensor([[1.0, 10], [2, 20], [3, 30], [4, 40]])})

    bias = position.bias(2, 2, device=CPU)

    assert bias.tolist() == [[[1, 1], [2, 1]], [[10, 10], [20, 10]]]


@pytest.mark.parametrize(
    ("causal", "buckets", "max_distance", "near"),
    [(True, 32, 8, 16), (True, 16, 8, 8), (False, 64, 16, 16)],
)
def test_a_small_max_distance_raises(causal, buckets, max_distance, near):
    with pytest.raises(ZooError, match=rf"max_distance \({max_distance}\).*{near}.*{buckets}"):
        T5(heads=2, causal=causal, buckets=buckets, max_distance=max_distance)


def test_state_dict_keys():
    shapes = {k: tuple(v.shape) for k, v in T5(heads=3, causal=True).state_dict().items()}

    assert shapes == {"table.weight": (32, 3)}


def test_version_1_is_migrated():
    params, _ = T5.migrate(1, {"buckets": 8, "farthest": 16}, {})
    assert params == {"buckets": 8, "max_distance": 16}
