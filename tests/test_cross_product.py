"""Every encoder x decoder x scorer x alignment x position: works by its laws, or is refused.

A combination that composes must hold the laws that only show when parts are joined: padding and
masked positions change nothing, later tokens change nothing, step by step equals all at once.
One that does not compose must say why in a sentence. There is no third outcome.
"""

import itertools
from collections import Counter

import pytest
import torch

import zoo
from zoo.registry.component_registry import default_registry

VOCAB = 9


def _names(kind):
    return sorted(entry.name for entry in default_registry().components(kind))


ENCODERS, DECODERS = _names("encoder"), _names("decoder")
SCORERS, ALIGNMENTS, POSITIONS = _names("scorer"), _names("alignment"), _names("position")
SMALL = {"learned": {"length": 16}, "t5": {"buckets": 8, "farthest": 16}}


def _part(name, **more):
    return {"type": name, **SMALL.get(name, {}), **more}


def _encoder(name, attention, position):
    if name == "transformer":
        return _transformer(attention, position)
    if name == "hierarchical":
        inner = {"type": "gru", "hidden": 4}
        return {"type": name, "words": inner, "sentences": inner, "span": 2}
    if name == "identity":
        return name
    return {"type": name, "hidden": 4, "bidirectional": True}


def _decoder(name, attention, position):
    if name == "transformer":
        return _transformer(attention, position)
    if name == "ngram":
        return {"type": name, "capacity": 8, "attention": attention}
    return {"type": name, "hidden": 8, "attention": attention}


def _transformer(attention, position):
    return {
        "type": "transformer",
        "layers": 1,
        "attention": {**attention, "heads": 2},
        "feed_forward": {"hidden": 8},
        "position": position and _part(position),
    }


def _spec(encoder, decoder, scorer, alignment, position):
    attention = {"scorer": _part(scorer), "align": _part(alignment), "project": "qkv"}
    return {
        "zoo": 1,
        "name": "cross",
        "model": {
            "type": "seq2seq",
            "source": {"type": "token", "vocab": VOCAB, "dim": 8},
            "encoder": _encoder(encoder, attention, position),
            "decoder": _decoder(decoder, attention, position),
        },
    }


SOURCE = torch.tensor([[3, 4, 5, 6, 7], [8, 3, 4, 0, 0]])
TARGET = torch.tensor([[1, 5, 3, 8], [1, 4, 4, 6]])


def _obeys(model):
    """The laws of the joined parts, on a padded batch."""
    with torch.no_grad():
        memory = model.encode(SOURCE)
        logits = model.decoder(TARGET, memory)
        assert logits.isfinite().all()
        alone = model.decoder(TARGET[1:], model.encode(SOURCE[1:, :3]))
        torch.testing.assert_close(logits[1:], alone, atol=1e-5, rtol=1e-5)
        later = TARGET.clone()
        later[:, 2:] = 7
        ahead = model.decoder(later, memory)[:, :2]
        torch.testing.assert_close(ahead, logits[:, :2], atol=1e-6, rtol=0)
        state = model.decoder.start(memory, steps=4)
        for t in range(4):
            step, state = model.decoder.step(TARGET[:, t : t + 1], state)
            torch.testing.assert_close(step[:, 0], logits[:, t], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("encoder", "decoder"), list(itertools.product(ENCODERS, DECODERS)))
def test_every_combination_works_or_says_why_not(encoder, decoder, record_property):
    counts = Counter()
    reasons = Counter()
    for scorer, alignment, position in itertools.product(SCORERS, ALIGNMENTS, [None, *POSITIONS]):
        label = f"{encoder} x {decoder} x {scorer} x {alignment} x {position}"
        try:
            spec = zoo.load_spec(_spec(encoder, decoder, scorer, alignment, position))
            model = spec.sections.model.build().eval()
        except zoo.SpecError as refusal:
            for problem in refusal.problems:
                assert len(problem.message.split()) > 3, f"{label}: {problem.message!r} says little"
                assert "could not be built" not in problem.message, f"{label}: {problem}"
                assert "fails on an example" not in problem.message, f"{label}: {problem}"
                reasons[problem.message] += 1
            counts["refused"] += 1
        else:
            try:
                _obeys(model)
            except Exception as error:
                raise AssertionError(f"{label}: {error}") from error
            counts["works"] += 1
    print(f"\n{encoder} x {decoder}: {counts['works']} work, {counts['refused']} refused")
    for reason, times in reasons.most_common():
        print(f"  {times:4d}  {reason}")
    record_property("counts", dict(counts))
    assert sum(counts.values()) == len(SCORERS) * len(ALIGNMENTS) * (len(POSITIONS) + 1)
