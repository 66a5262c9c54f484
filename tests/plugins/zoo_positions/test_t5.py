import math

import pytest
import torch

from zoo import ZooError
from zoo_positions.t5 import T5

CPU = torch.device("cpu")


def bucket_by_hand(relative: int, causal: bool, buckets: int, farthest: int) -> int:
    """The bucket of a key that many places after the query, in float64."""
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
    grown = math.log(distance / near) / math.log(farthest / near) * (buckets - near)
    # Where a boundary is a whole number, the logarithms' last bit must not decide.
    return first + min(near + math.floor(grown + 1e-6), buckets - 1)


def buckets_of(position: T5, T: int, S: int, offset: int | torch.Tensor = 0) -> torch.Tensor:
    """With a table that counts, the bias is the bucket."""
    with torch.no_grad():
        position.table.weight.copy_(torch.arange(position.buckets)[:, None].expand(-1, 2))
        return position.bias(T, S, offset=offset, device=CPU)[0].long()


def test_buckets_of_the_past_by_hand():
    position = T5(heads=2, causal=True, buckets=8, farthest=16)

    # 0..3 have a bucket each; then 4 + 4 log(d / 4) / log(16 / 4): 5 from 5.7, 6 from 8 and
    # 7 from 11.3 on.
    buckets = buckets_of(position, 1, 22, offset=20)[0]

    by_distance = buckets.flip(0)[1:].tolist()  # the first is a later key
    assert buckets[21] == 0
    assert by_distance == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7]


def test_buckets_of_both_sides_by_hand():
    position = T5(heads=2, causal=False, buckets=8, farthest=16)

    # Four a side: 0 and 1 alone, then 2 + 2 log(d / 2) / log(16 / 2): 3 from 5.7 on.
    buckets = buckets_of(position, 1, 13, offset=6)[0]

    assert buckets.tolist() == [3, 2, 2, 2, 2, 1, 0, 5, 6, 6, 6, 6, 7]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20), (4, 8), (10, 64), (7, 9)])
def test_buckets_equal_the_formula_written_as_loops(causal, buckets, farthest):
    position = T5(heads=2, causal=causal, buckets=buckets, farthest=farthest)

    actual = buckets_of(position, 300, 300)

    for t in range(300):
        for s in range(0, 300, 1 if t in (0, 150, 299) else 37):
            assert actual[t, s] == bucket_by_hand(s - t, causal, buckets, farthest), (t, s)


@pytest.mark.parametrize("offset", [4, torch.tensor(4)])
@pytest.mark.parametrize("causal", [True, False])
def test_queries_from_an_offset_on_are_rows_of_the_whole(causal, offset):
    torch.manual_seed(0)
    position = T5(heads=3, causal=causal)

    later = position.bias(3, 9, offset=offset, device=CPU)

    assert torch.equal(later, position.bias(7, 9, device=CPU)[:, 4:])


def test_every_head_has_a_number_of_its_own_for_each_bucket():
    position = T5(heads=2, causal=True, buckets=4)
    position.load_state_dict({"table.weight": torch.tensor([[1.0, 10], [2, 20], [3, 30], [4, 40]])})

    bias = position.bias(2, 2, device=CPU)

    assert bias.tolist() == [[[1, 1], [2, 1]], [[10, 10], [20, 10]]]


@pytest.mark.parametrize(
    ("causal", "buckets", "farthest", "near"),
    [(True, 32, 8, 16), (True, 16, 8, 8), (False, 64, 16, 16)],
)
def test_a_farthest_distance_among_the_near_ones_is_refused(causal, buckets, farthest, near):
    message = (
        rf"^farthest \({farthest}\) must be above the {near} distances that have a bucket each$"
    )
    with pytest.raises(ZooError, match=message):
        T5(heads=2, causal=causal, buckets=buckets, farthest=farthest)


def test_its_weights_are_named():
    shapes = {k: tuple(v.shape) for k, v in T5(heads=3, causal=True).state_dict().items()}

    assert shapes == {"table.weight": (32, 3)}
