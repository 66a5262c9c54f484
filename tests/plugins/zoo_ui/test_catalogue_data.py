"""Docstrings in parts."""

from zoo_ui.catalogue_data import split_docstring

DOC = """Score of two vectors.

.. math::

    s(q, k) = q^\\top k

Paper: a paper, equation 3,
in two lines.

Args:
    dim, width: the width, which
        has a second line.
    scale: the factor: 2 or 3.

Shapes:
    query [B, T], key [B, S]
    -> [B, T, S].
"""


def test_blocks_and_arguments():
    found = split_docstring(DOC)
    assert found["blocks"] == [
        {"type": "text", "text": "Score of two vectors."},
        {"type": "formula", "text": "s(q, k) = q^\\top k"},
        {"type": "text", "text": "Paper: a paper, equation 3, in two lines."},
        {"type": "section", "title": "Shapes", "text": "query [B, T], key [B, S]\n-> [B, T, S]."},
    ]
    width = "the width, which has a second line."
    assert found["arguments"] == {"dim": width, "width": width, "scale": "the factor: 2 or 3."}
    assert split_docstring("") == {"blocks": [], "arguments": {}}
