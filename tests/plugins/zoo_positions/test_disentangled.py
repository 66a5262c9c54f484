import math

import pytest
import torch
from attention_kit import build
from hf_models import MODELS

import zoo
from zoo_positions.disentangled import Disentangled

WIDTHS = {"dim": 8, "heads": 2, "head_dim": 4}
CPU = torch.device("cpu")


def bucket_by_hand(distance: int, buckets: int, max_distance: int) -> int:
    """Compute the bucket of a distance in float64."""
    near = buckets // 2
    if abs(distance) <= near:
        return distance
    far = math.log(abs(distance) / near) / math.log((max_distance - 1) / near) * (near - 1)
    return int(math.copysign(near + math.ceil(far - 1e-6), distance))


def test_distances_have_known_vectors():
    position = Disentangled(**WIDTHS, max_distance=3)
    _, index = position.relative(5, 5, device=CPU)
    # Distances -4 to 4 of query and key; -3 is the first vector, 2 and above the last.
    assert index[0].tolist() == [3, 2, 1, 0, 0]
    assert index[4].tolist() == [5, 5, 5, 4, 3]


def test_buckets_have_known_values():
    position = Disentangled(**WIDTHS, max_distance=32, buckets=8)
    _, index = position.relative(1, 33, offset=32, device=CPU)
    # Distances up to 4 have a vector each; bucket 5 up to 7.9, 6 up to 15.7, 7 up to 31.
    buckets = (index[0] - 8).flip(0).tolist()
    assert buckets == [0, 1, 2, 3, 4, *[5] * 3, *[6] * 8, *[7] * 17]


@pytest.mark.parametrize(
    ("buckets", "max_distance"), [(256, 512), (8, 20), (2, 8), (9, 64), (6, 5)]
)
def test_buckets_match_the_formula_as_loops(buckets, max_distance):
    position = Disentangled(**WIDTHS, max_distance=max_distance, buckets=buckets)
    _, index = position.relative(200, 200, device=CPU)
    for t in range(0, 200, 13):
        for s in range(200):
            expected = bucket_by_hand(t - s, buckets, max_distance) + buckets
            assert index[t, s] == min(max(expected, 0), 2 * buckets - 1), (t, s)


def test_known_values_of_the_bias():
    position = Disentangled(dim=2, heads=1, head_dim=2, max_distance=2)
    bias = position.build_score_bias(2)
    vectors = torch.tensor([[1.0, 0], [0, 1], [2, 0], [0, 3]])
    with torch.no_grad():
        position.table.weight.copy_(vectors)
        for layer in (bias.key, bias.query):
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
    queries = torch.tensor([[[[1.0, 2], [3, 4]]]])
    keys = torch.tensor([[[[5.0, 6], [7, 8]]]])
    attention = build("scaled-dot", 8, 8, heads=1)

    found = bias(attention, position, torch.zeros(1, 2, 2), queries, keys)

    # Distances 0, -1; 1, 0 of query and key have the vectors 2, 1; 3, 2.
    expected = [[1 * 2 + 5 * 2, 2 * 1 + 8 * 1], [4 * 3 + 6 * 3, 3 * 2 + 7 * 2]]
    torch.testing.assert_close(found[0, 0], torch.tensor(expected) / math.sqrt(3 * 2))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("terms", ["both", "content-to-position", "position-to-content"])
def test_bias_is_that_of_deberta_for_long_texts(terms, shared):
    names = {"content-to-position": ["c2p"], "position-to-content": ["p2c"]}
    cls, config = MODELS["deberta-v2"]
    options = config.to_diff_dict() | {
        "max_position_embeddings": 64, "position_buckets": 8, "share_att_key": shared,
        "pos_att_type": names.get(terms, ["c2p", "p2c"]),
    }  # fmt: skip
    theirs = cls(type(config)(**options)).deberta.encoder.eval()
    layer = theirs.layer[0].attention.self
    position = Disentangled(
        **WIDTHS, max_distance=64, buckets=8, terms=terms, shared=shared, norm_eps=1e-7
    )
    bias, attention = position.build_score_bias(8), build("scaled-dot", 8, 8, heads=2)
    with torch.no_grad():
        position.table.weight.copy_(theirs.rel_embeddings.weight)
        attention.query.load_state_dict(layer.query_proj.state_dict())
        attention.key.load_state_dict(layer.key_proj.state_dict())
        if bias.key is not None:
            bias.key.load_state_dict(layer.pos_key_proj.state_dict())
        if bias.query is not None:
            bias.query.load_state_dict(layer.pos_query_proj.state_dict())
        states = torch.randn(2, 90, 8)
        queries, keys = attention.project_queries(states), attention.project_keys(states)
        scale = 3 if terms == "both" else 2
        expected = layer.disentangled_attention_bias(
            queries.flatten(0, 1),
            keys.flatten(0, 1),
            theirs.get_rel_pos(states),
            theirs.get_rel_embedding(),
            scale,
        )
        found = bias(attention, position, states, queries, keys)
    torch.testing.assert_close(found.flatten(0, 1), expected, atol=1e-6, rtol=0)


def test_state_dict_keys():
    position = Disentangled(**WIDTHS, max_distance=6, norm_eps=1e-7)
    shapes = {k: tuple(v.shape) for k, v in position.state_dict().items()}
    assert shapes == {"table.weight": (12, 8), "norm.weight": (8,), "norm.bias": (8,)}
    own = {k: tuple(v.shape) for k, v in position.build_score_bias(8).state_dict().items()}
    assert own == {
        "key.weight": (8, 8), "key.bias": (8,), "query.weight": (8, 8), "query.bias": (8,)
    }  # fmt: skip
    shared = Disentangled(**WIDTHS, shared=True)
    assert not shared.build_score_bias(8).state_dict()


def test_too_many_buckets_raise():
    with pytest.raises(zoo.ZooError, match=r"max_distance \(5\) must be greater than 5 with 8"):
        Disentangled(**WIDTHS, max_distance=5, buckets=8)


def test_shared_projections_of_other_widths_raise():
    with pytest.raises(zoo.ZooError, match="width of the states, 6, not 8"):
        Disentangled(**WIDTHS, shared=True).build_score_bias(6)
