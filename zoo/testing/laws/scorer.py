"""Laws of scorers, alone and inside an attention."""

from __future__ import annotations

import torch

from zoo.attention import Attention
from zoo.errors import ZooError
from zoo.interfaces import Scorer
from zoo.registry.blueprint import Blueprint
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.attention import check_mask, check_stepwise
from zoo.testing.laws.helpers import assert_close, randn
from zoo.testing.tiny import TinyAlignment


def _inputs(config: Configuration) -> tuple[torch.Tensor, torch.Tensor]:
    parent_values = config.parent_values()
    return randn(2, 3, parent_values["query_dim"], seed=1), randn(
        2, 4, parent_values["key_dim"], seed=2
    )


def key_permutation(config: Configuration) -> None:
    """Permuting the keys permutes the scores, unless the scorer ignores keys."""
    scorer = config.build()
    query, key = _inputs(config)
    order = torch.tensor([2, 0, 3, 1])
    scores = scorer(query, key)
    assert scores.shape == (2, 3, 4), f"scores are {list(scores.shape)}, not [B, T, S]"
    expected = scores if scorer.ignores_keys else scores[..., order]
    assert_close(scorer(query, key[:, order]), expected, "scores of permuted keys")


def pair_form(config: Configuration) -> None:
    """`score_pairs` and `score_edges` equal the corresponding elements of `score`, also for other
    numbers of leading dimensions; a scorer that ignores keys raises."""
    scorer = config.build()
    query, key = _inputs(config)
    dense = scorer(query, key)
    pairs = query[:, :, None].expand(-1, -1, 4, -1), key[:, None].expand(-1, 3, -1, -1)
    if scorer.ignores_keys:
        _check_pairs_raise(scorer, *pairs)
    else:
        assert_close(scorer.score_pairs(*pairs), dense, "scores of pairs")
        target, source = torch.tensor([2, 0, 2, 1]), torch.tensor([3, 3, 0, 1])
        edge_scores = scorer(query, key, edges=(target, source))
        assert_close(edge_scores, dense[:, target, source], "scores of edges")
    assert_close(scorer(query[0], key[0]), dense[0], "scores without a batch")
    assert_close(
        scorer(query[:, None], key[:, None])[:, 0], dense, "scores with two leading dimensions"
    )


def _check_pairs_raise(scorer: Scorer, query: torch.Tensor, key: torch.Tensor) -> None:
    message = None
    try:
        scorer.score_pairs(query, key)
    except ZooError as error:
        message = str(error)
    assert message is not None, "a scorer that ignores keys scores pairs"
    assert scorer.name in message, f"the error does not name the scorer: {message}"


def prepared_keys(config: Configuration) -> None:
    """Scores of prepared keys equal scores of keys."""
    scorer = config.build()
    query, key = _inputs(config)
    prepared = scorer.prepare(key)
    assert prepared.shape[:-1] == key.shape[:-1], "prepare changes other dimensions than the last"
    assert_close(
        scorer(query, prepared, prepared=True), scorer(query, key), "scores of prepared keys"
    )
    alone = torch.cat(
        [scorer(query[:, t : t + 1], prepared, prepared=True) for t in range(3)], dim=1
    )
    assert_close(alone, scorer(query, key), "scores of one query at a time")


def gradients(config: Configuration) -> None:
    """Gradients equal finite differences (gradcheck in float64), also step by step."""
    scorer = config.build()
    query, key = (tensor.requires_grad_() for tensor in _inputs(config))
    weights = list(scorer.parameters())

    def scores(*inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = scorer(inputs[0], inputs[1])
        return result

    def step_scores(*inputs: torch.Tensor) -> torch.Tensor:
        query, prepared, previous_weights = inputs[0], scorer.prepare(inputs[1]), inputs[2]
        state, steps = scorer.init_state(prepared), []
        for t in range(3):
            before = state | {"weights": previous_weights * (t > 0)}
            step, state = scorer(query[:, t : t + 1], prepared, prepared=True, state=before)
            steps.append(step)
        return torch.cat(steps, dim=1)

    torch.autograd.gradcheck(scores, (query, key, *weights))
    if scorer.sequential:
        previous_weights = randn(2, 4, seed=3).softmax(dim=-1).requires_grad_()
        torch.autograd.gradcheck(step_scores, (query, key, previous_weights, *weights))


def masked_attention(config: Configuration) -> None:
    """Inside an attention, masked and future keys have no effect, with one head and several."""
    for heads in (1, 2):
        check_mask(config, _attention(config, heads))


def stepwise_queries(config: Configuration) -> None:
    """Inside an attention, processing queries one at a time gives the same context as in parallel
    (sequential scorers: for the first query only), and the state can be reordered."""
    for heads in (1, 2):
        check_stepwise(config, _attention(config, heads))


def _attention(config: Configuration, heads: int) -> Attention:
    blueprint = Blueprint.of(
        Attention,
        scorer=config.blueprint(),
        align=Blueprint.of(TinyAlignment),
        heads=heads,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return blueprint.build(query_dim=8, key_dim=8).double().eval()


LAWS = (
    Law("key-permutation", key_permutation),
    Law("pair-form", pair_form),
    Law("prepared-keys", prepared_keys),
    Law("gradients", gradients),
    Law("masked-attention", masked_attention),
    Law("stepwise-queries", stepwise_queries),
)
