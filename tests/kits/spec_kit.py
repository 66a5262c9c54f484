"""A small spec with placeholders for the parts of its attention."""

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
