"""Small specs, one with placeholders for the parts of its attention, and helpers that read them."""

from zoo import load_spec
from zoo.spec.spec import draft_spec

BASE = """\
zoo: 1
name: base
model:
  type: seq2seq
  source: {type: token, vocab: 16, dim: 4}
  encoder: {type: gru, hidden: 8, layers: 2}
  decoder:
    type: attentive-rnn
    hidden: 16
    attention: {scorer: additive, align: soft}
metrics: [bleu, accuracy]
"""

SPEC = """\
zoo: 1
name: tiny
model:
  type: seq2seq
  source: {type: token, vocab: 16, dim: 4}
  encoder: {type: gru, hidden: 8}
  decoder:
    type: attentive-rnn
    hidden: 16
    attention: {scorer: SCORER, align: ALIGN}
"""


def extended(base, text):
    """Return the resolved form of a spec with this text that extends the base."""
    child = base.parent / "child.yaml"
    child.write_text("extends: base.yaml\n" + text)
    return load_spec(child).resolve()


def single_problem(source, *overrides):
    (problem,) = draft_spec(source, overrides=overrides).problems
    return problem
