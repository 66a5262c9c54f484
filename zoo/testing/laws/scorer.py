"""Laws of scorers, alone and inside an attention."""

from __future__ import annotations

import torch

from zoo.attention import Attention, recording
from zoo.errors import ZooError
from zoo.interfaces import Mask, Scorer
from zoo.registry.blueprint import Blueprint
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.attention import check_mask, check_stepwise
from zoo.testing.laws.helpers import assert_close, length_mask, randn
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
    """Inside an attention, masked and future keys have no effect, on both paths and with heads."""
    for heads in (1, 2):
        check_mask(config, _attention(config, heads))


def stepwise_queries(config: Configuration) -> None:
    """Inside an attention, processing queries one at a time gives the same context as in parallel
    (sequential scorers: for the first query only), and the state can be reordered."""
    for heads in (1, 2):
        check_stepwise(config, _attention(config, heads))


def fused_path(config: Configuration) -> None:
    """The fused path equals the reference path, with its gradients, for every form of mask; it
    drops weights with the given probability. In float32 if it does not support float64."""
    attention = _attention(config, 1)
    dtype = _fused_dtype(attention)
    tolerance = 1e-7 if dtype == torch.float64 else 1e-4
    attention.to(dtype)
    query, memory = (randn(2, n, 8, seed=n).to(dtype).requires_grad_() for n in (3, 4))
    inputs = [query, memory, *attention.parameters()]
    keys, masked_row = length_mask([4, 2]), length_mask([4, 0])
    for mask in (
        Mask(),
        Mask(keys=keys),
        Mask(keys=masked_row),
        Mask(causal=True),
        Mask(causal=True, offset=1),
        Mask(keys=keys, causal=True),
        Mask(causal=True, bias=randn(1, 3, 4, seed=5).to(dtype)),
    ):
        fused = attention(query, memory, mask)
        with recording(attention):
            reference = attention(query, memory, mask)
        assert_close(fused, reference, "the fused context", tolerance=tolerance)
        grads = (torch.autograd.grad(each.square().sum(), inputs) for each in (fused, reference))
        for ours, theirs in zip(*grads, strict=True):
            assert_close(ours, theirs, "a gradient of the fused context", tolerance=tolerance)
    _check_fused_dropout(attention, dtype)


def _fused_dtype(attention: Attention) -> torch.dtype:
    """Return the first of float64 and float32 that the fused path supports."""
    for dtype in (torch.float64, torch.float32):
        states = randn(1, 2, 8, seed=1).to(dtype)
        prepared = attention.to(dtype).prepare(states)
        parts = states[:, None], prepared["keys"], prepared["values"], Mask()
        if attention.scorers.fused(*parts) is not None:
            return dtype
    raise NotApplicable("it has no fused path")


def _check_fused_dropout(attention: Attention, dtype: torch.dtype) -> None:
    """Check the fraction of dropped weights, if the fused path supports dropout."""
    states = randn(2, 32, 8, seed=6).to(dtype)
    keys = attention.prepare(states)["keys"]
    values = torch.eye(32, dtype=dtype).expand(2, 1, 32, 32)  # the context is the weights
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        weights = attention.scorers.first.fused(
            states[:, None], keys, values, Mask(), dropout_p=0.5
        )
    if weights is not None:
        fraction = float((weights == 0).double().mean())
        assert abs(fraction - 0.5) < 0.1, f"{fraction:.2f} of the weights are dropped, not 0.5"


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
    Law("fused-path", fused_path),
)
