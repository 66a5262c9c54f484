import json

import pytest

from zoo import DataError
from zoo_datasets.text_spans import TextSpans


def examples(folder, *rows):
    text = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    (folder / "a.jsonl").write_text(text)
    return TextSpans(file=str(folder / "a.jsonl")).open()


def test_spans_become_tags(tmp_path):
    spans = [[17, 25, "LOC"], {"start": 0, "end": 8, "label": "PER"}]
    (found,) = examples(tmp_path, {"text": "Ada King, not in New York.", "spans": spans})
    assert found["source"] == ["Ada", "King", ",", "not", "in", "New", "York", "."]
    assert found["target"] == ["B-PER", "I-PER", "O", "O", "O", "B-LOC", "I-LOC", "O"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "Ada King", "spans": [[0, 2, "PER"]]}, r"span \[0, 2\], 'Ad', does not begin"),
        ({"text": "Ada", "spans": [[0, 3, "A"], [0, 3, "B"]]}, r"span \[0, 3\] overlaps another"),
        ({"text": "Ada", "spans": [[0, 9, "A"]]}, "is not in the text, which has 3 characters"),
        ({"text": "Ada", "spans": [[-1, 3, "A"]]}, r"span \[-1, 3\] is not in the text"),
        ({"text": "Ada", "spans": [[3, 0, "A"]]}, r"span \[3, 0\] is not in the text"),
        ({"text": "Ada", "spans": [[0, "3", "A"]]}, r"a list of \[start, end, label\]"),
        ({"text": "Ada"}, "expected a JSON object with 'text', a text, and 'spans'"),
        ({"text": " ", "spans": []}, "'text' is not a text or empty"),
        ("[1", "expected a JSON object"),
    ],
)
def test_errors_name_the_line(tmp_path, row, message):
    opened = examples(tmp_path, {"text": "Ada", "spans": []}, row)
    with pytest.raises(DataError, match=rf"a\.jsonl:2: .*{message}"):
        opened[1]
