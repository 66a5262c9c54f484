"""Every encoder with every decoder, and every scorer, alignment and position in each attention.

Each part has its own small configuration from `zoo.testing`. A combination composes and satisfies
the laws of joined parts (padding, causality, step by step equal to in parallel), or it is rejected
for one of the listed reasons. The counts are exact: a new component changes them.
"""

import itertools
import re
from collections import Counter

import pytest
import torch

import zoo
from zoo.registry.component_registry import default_registry
from zoo.testing.configuration import configurations
from zoo.testing.tiny import PLUGIN, TINY_COMPONENTS, TinySampler

REGISTRY = default_registry().with_components(TINY_COMPONENTS, plugin=PLUGIN)
SOURCE = torch.tensor([[3, 4, 5, 6, 7], [8, 3, 4, 0, 0]])
TARGET = torch.tensor([[1, 5, 3, 8], [1, 4, 4, 6]])


def _parts(kind):
    """The smallest configuration of each component of a kind, as written in a spec."""
    parts = {}
    for entry in default_registry().components(kind):
        params = dict(next(configurations(entry.cls)).params)
        if "layers" in params:
            params["layers"] = 1
        parts[entry.name] = {"type": entry.name, **params}
    return parts


ENCODERS, DECODERS = _parts("encoder"), _parts("decoder")
SCORERS, ALIGNMENTS, POSITIONS = _parts("scorer"), _parts("alignment"), _parts("position")

NO_GRADIENT = {"ngram"}
"""Decoders without parameters that a gradient reaches."""
POOLED = {"attention-pooling", "normed-pooling"}
"""Encoders with parameters for their summary only."""

# Reasons for rejection, by the names and keys that the message contains; the first match counts.
REASONS = {
    "rotary positions with a scorer that is not an inner product": r"'rotary'",
    "compared positions with a scorer that is not an inner product": r"'disentangled'",
    "samples of sentences that are not used": r"'hard'.*decoder 'hierarchical'",
    "samples in an encoder reach no objective": r"'hard'",
    "projected keys with a scorer that ignores keys": r"'location-window'.*project",
    "sequential part in a Transformer": r"'(location|location-window|monotonic)'",
}


def _build(encoder, decoder):
    model = {
        "type": "seq2seq",
        "source": {"type": "token", "vocab": 9, "dim": 8},
        "encoder": encoder,
        "decoder": decoder,
    }
    spec = zoo.load_spec({"zoo": 1, "name": "cross", "model": model}, registry=REGISTRY)
    torch.manual_seed(0)
    return spec.sections.model.build()


def _assert_laws(model):
    """Check padding, causality and stepwise decoding of the joined parts on a padded batch."""
    model.eval()
    with torch.no_grad():
        memory = model.encode(SOURCE)
        logits = model.decoder(TARGET, memory)
        assert logits.isfinite().all()
        unpadded = model.decoder(TARGET[1:], model.encode(SOURCE[1:, :3]))
        torch.testing.assert_close(logits[1:], unpadded, atol=1e-5, rtol=1e-5)
        changed = TARGET.clone()
        changed[:, 2:] = 7
        before_change = model.decoder(changed, memory)[:, :2]
        torch.testing.assert_close(before_change, logits[:, :2], atol=1e-6, rtol=0)
        state = model.decoder.start(memory, steps=4)
        for t in range(4):
            step, state = model.decoder.step(TARGET[:, t : t + 1], state)
            torch.testing.assert_close(step[:, 0], logits[:, t], atol=1e-5, rtol=1e-5)


def _assert_trains(model, encoder, decoder):
    outputs = model.train()({"source": SOURCE, "target": TARGET})
    assert outputs.logits.requires_grad == (decoder not in NO_GRADIENT)
    if outputs.logits.requires_grad:
        sum(tensor.square().sum() for tensor in outputs.differentiable()).backward()
        missing = [name for name, p in model.named_parameters() if p.grad is None]
        if encoder in POOLED:  # the decoder may not use the summary
            inner = "encoder.encoder."
            missing = [n for n in missing if n.startswith(inner) or not n.startswith("encoder.")]
        assert not missing


def _assert_generates(model):
    tokens = model.eval().generate({"source": SOURCE}, TinySampler(), max_length=4).tokens
    assert tokens.shape[:2] == (2, 1)
    assert 1 <= tokens.shape[2] <= 4
    assert tokens.min() >= 0
    assert tokens.max() < 9


def _reason(error):
    """Return the listed reason of a rejection; fail if there is none."""
    (problem,) = error.problems
    for reason, pattern in REASONS.items():
        if isinstance(error.__cause__, zoo.ZooError) and re.search(pattern, problem.message):
            return reason
    raise AssertionError(f"rejected for a reason that is not listed: {problem}") from error


def test_every_encoder_works_with_every_decoder():
    counts = Counter()
    for encoder, decoder in itertools.product(ENCODERS, DECODERS):
        try:
            model = _build(ENCODERS[encoder], DECODERS[decoder])
        except zoo.SpecError as error:
            counts[_reason(error)] += 1
            continue
        try:
            _assert_laws(model)
            _assert_trains(model, encoder, decoder)
            _assert_generates(model)
        except Exception as error:
            raise AssertionError(f"{encoder} x {decoder}: {error}") from error
        counts["composed"] += 1
    print(f"\n{len(ENCODERS)} encoders x {len(DECODERS)} decoders: {dict(counts)}")
    assert counts == {"composed": 108}


# For each part with an attention: the counts over all scorers, alignments and positions.
ATTENTIONS = {
    ("encoder", "transformer"): {
        "composed": 408,
        "sequential part in a Transformer": 240,
        "samples in an encoder reach no objective": 68,
        "rotary positions with a scorer that is not an inner product": 42,
        "compared positions with a scorer that is not an inner product": 42,
    },
    ("encoder", "attention-pooling"): {
        "composed": 48,
        "sequential part in a Transformer": 24,
        "samples in an encoder reach no objective": 8,
    },
    ("decoder", "transformer"): {
        "composed": 476,
        "sequential part in a Transformer": 160,
        "projected keys with a scorer that ignores keys": 80,
        "rotary positions with a scorer that is not an inner product": 42,
        "compared positions with a scorer that is not an inner product": 42,
    },
    ("decoder", "attentive-rnn"): {"composed": 80},
    ("decoder", "luong-rnn"): {"composed": 80},
    ("decoder", "pointer-rnn"): {"composed": 80},
    ("decoder", "show-attend-tell"): {"composed": 80},
    ("decoder", "hierarchical"): {"composed": 70, "samples of sentences that are not used": 10},
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(*row, marks=[] if row[1] == "attentive-rnn" else [pytest.mark.slow])
        for row in ATTENTIONS
    ],
)
def test_every_scorer_alignment_and_position_works_or_is_rejected(kind, name):
    positions = [None, *POSITIONS] if name == "transformer" else [None]
    counts = _count_attentions(kind, name, itertools.product(SCORERS, ALIGNMENTS, positions))
    assert counts == ATTENTIONS[kind, name]


def test_every_pair_of_scorer_alignment_and_position_works_in_a_transformer():
    """The third part is the default; the slow tests have all combinations."""
    defaults = ("scaled-dot", "soft", None)
    combinations = itertools.product(SCORERS, ALIGNMENTS, [None, *POSITIONS])
    pairs = [c for c in combinations if any(a == b for a, b in zip(c, defaults, strict=True))]
    assert _count_attentions("decoder", "transformer", pairs) == {
        "composed": 170,
        "sequential part in a Transformer": 34,
        "projected keys with a scorer that ignores keys": 17,
        "rotary positions with a scorer that is not an inner product": 6,
        "compared positions with a scorer that is not an inner product": 6,
    }


@pytest.mark.parametrize(
    "name",
    [
        name
        for kind, name in ATTENTIONS
        if kind == "decoder" and name not in ("transformer", "attentive-rnn")
    ],
)
def test_every_scorer_and_every_alignment_works_in_a_recurrent_decoder(name):
    """The other part is the default; `attentive-rnn` and the slow tests have all combinations."""
    rejected = {"samples of sentences that are not used": 1} if name == "hierarchical" else {}
    pairs = [(scorer, "soft", None) for scorer in SCORERS]
    pairs += [("scaled-dot", alignment, None) for alignment in ALIGNMENTS if alignment != "soft"]
    composed = len(pairs) - sum(rejected.values())
    assert _count_attentions("decoder", name, pairs) == {"composed": composed, **rejected}


def _count_attentions(kind, name, combinations):
    """Check a part with each attention; return how many compose, or are rejected for a reason."""
    base = (ENCODERS if kind == "encoder" else DECODERS)[name]
    counts = Counter()
    for scorer, alignment, position in combinations:
        attention = {"scorer": SCORERS[scorer], "align": ALIGNMENTS[alignment], "heads": 2}
        part = {**base, "attention": {**base["attention"], **attention}}
        if position:
            part["position"] = POSITIONS[position]
        pair = {"encoder": ENCODERS["gru"], "decoder": DECODERS["luong-rnn"], kind: part}
        try:
            model = _build(**pair)
        except zoo.SpecError as error:
            counts[_reason(error)] += 1
            continue
        try:
            _assert_laws(model)
        except Exception as error:
            raise AssertionError(f"{scorer} x {alignment} x {position}: {error}") from error
        counts["composed"] += 1
    print(f"\n{kind} {name}: {dict(counts)}")
    return counts


def test_every_part_with_an_attention_is_in_the_table():
    with_attention = {
        (kind, name)
        for kind, parts in (("encoder", ENCODERS), ("decoder", DECODERS))
        for name, params in parts.items()
        if "align" in params.get("attention", {})
    }
    assert with_attention == set(ATTENTIONS)
