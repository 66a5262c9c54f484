"""The laws of scorers, alone and inside an attention."""

from __future__ import annotations

import torch

from zoo.attention import Attention
from zoo.errors import ZooError
from zoo.interfaces import Mask, Scorer
from zoo.registry.blueprint import Blueprint
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.attention import answers_in_turn, obeys_mask
from zoo.testing.laws.tensors import noise, ragged, same
from zoo.testing.parts import TinyAlignment
from zoo.testing.subject import Subject


def _inputs(subject: Subject) -> tuple[torch.Tensor, torch.Tensor]:
    given = subject.given()
    return noise(2, 3, given["query_dim"], seed=1), noise(2, 4, given["key_dim"], seed=2)


def key_permutation(subject: Subject) -> None:
    """Permuting the keys permutes the scores; a scorer of places alone does not notice."""
    scorer = subject.part()
    query, key = _inputs(subject)
    order = torch.tensor([2, 0, 3, 1])
    scores = scorer(query, key)
    assert scores.shape == (2, 3, 4), f"scores are {list(scores.shape)}, not [B, T, S]"
    expected = scores if scorer.positional else scores[..., order]
    same(scorer(query, key[:, order]), expected, "scores of permuted keys")


def pair_form(subject: Subject) -> None:
    """The pair form equals the dense form, also of listed edges and with no or more leading
    dimensions; a scorer of places alone refuses pairs with a reason."""
    scorer = subject.part()
    query, key = _inputs(subject)
    dense = scorer(query, key)
    both = query[:, :, None].expand(-1, -1, 4, -1), key[:, None].expand(-1, 3, -1, -1)
    if scorer.positional:
        _refuses_pairs(scorer, *both)
    else:
        same(scorer.pairs(*both), dense, "pairs against dense")
        target, source = torch.tensor([2, 0, 2, 1]), torch.tensor([3, 3, 0, 1])
        listed = scorer.edges(query, key, target, source)
        same(listed, dense[:, target, source], "listed edges against dense")
    same(scorer(query[0], key[0]), dense[0], "scores without a batch")
    same(scorer(query[:, None], key[:, None])[:, 0], dense, "scores with two leading dimensions")


def _refuses_pairs(scorer: Scorer, query: torch.Tensor, key: torch.Tensor) -> None:
    said = None
    try:
        scorer.pairs(query, key)
    except ZooError as error:
        said = str(error)
    assert said is not None, "a scorer of places alone scores pairs"
    assert scorer.name in said, f"the refusal does not name the scorer: {said}"


def prepared_keys(subject: Subject) -> None:
    """Preparing the keys first, once, changes nothing."""
    scorer = subject.part()
    query, key = _inputs(subject)
    prepared = scorer.prepare(key)
    assert prepared.shape[:-1] == key.shape[:-1], "prepare changes more than the last dimension"
    same(scorer.score(query, prepared), scorer(query, key), "scores of prepared keys")
    alone = torch.cat([scorer.score(query[:, t : t + 1], prepared) for t in range(3)], dim=1)
    same(alone, scorer(query, key), "scores of one query at a time")


def gradients(subject: Subject) -> None:
    """Gradients are those of finite differences (gradcheck in float64), step by step too."""
    scorer = subject.part()
    query, key = (tensor.requires_grad_() for tensor in _inputs(subject))
    weights = list(scorer.parameters())

    def scores(*inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = scorer(inputs[0], inputs[1])
        return result

    def followed(*inputs: torch.Tensor) -> torch.Tensor:
        query, prepared, looked = inputs[0], scorer.prepare(inputs[1]), inputs[2]
        own, steps = scorer.first(prepared), []
        for t in range(3):
            before = own | {"weights": looked * (t > 0)}
            step, own = scorer.follow(query[:, t : t + 1], prepared, before)
            steps.append(step)
        return torch.cat(steps, dim=1)

    torch.autograd.gradcheck(scores, (query, key, *weights))
    if scorer.sequential:
        looked = noise(2, 4, seed=3).softmax(dim=-1).requires_grad_()
        torch.autograd.gradcheck(followed, (query, key, looked, *weights))


def masked_attention(subject: Subject) -> None:
    """Inside an attention, masked and future keys change nothing, fused or not, in any heads."""
    for heads in (1, 2):
        obeys_mask(subject, _attention(subject, heads))


def queries_in_turn(subject: Subject) -> None:
    """Inside an attention, queries one by one get what they get all at once (of a sequential
    scorer the first does), and what is remembered follows its row."""
    for heads in (1, 2):
        answers_in_turn(subject, _attention(subject, heads))


def fused_path(subject: Subject) -> None:
    """The fused path equals the reference path, with masks of every form."""
    attention = _attention(subject, 1)
    query, memory = noise(2, 3, 8, seed=3), noise(2, 4, 8, seed=4)
    for mask in (Mask(), Mask(keys=ragged([4, 2])), Mask(causal=True, offset=1)):
        prepared = attention.prepare(memory)
        queries = query[:, None]
        fused = attention._fused(queries, prepared["keys"], prepared["values"], mask)
        if fused is None:
            raise NotApplicable("it has no fused path")
        plain = attention._reference(queries, prepared["keys"], prepared["values"], mask)
        same(fused, plain, "the fused context", tolerance=1e-7)


def _attention(subject: Subject, heads: int) -> Attention:
    blueprint = Blueprint.of(
        Attention,
        scorer=subject.blueprint(),
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
    Law("queries-in-turn", queries_in_turn),
    Law("fused-path", fused_path),
)
