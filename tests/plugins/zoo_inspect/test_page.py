"""Pages as files: what they contain, that it can be read again, and their size."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import pytest
import torch
from view_kit import VIEWS, long_view, make_view, softmax, text_view

from zoo.errors import ZooError
from zoo_inspect.page import page_data, page_text, pool_weights, read_page, write_page
from zoo_inspect.stored import from_json, to_json
from zoo_inspect.view import Axis, LayerView


@pytest.mark.parametrize("name", VIEWS)
def test_a_page_can_be_read_again(name, tmp_path):
    view = VIEWS[name]()
    write_page(view, tmp_path / "page.html")
    data, weights = read_page(tmp_path / "page.html")
    assert data["tolerance"] == 0.002
    for layer, decoded in zip(view.layers, weights, strict=True):
        torch.testing.assert_close(decoded, layer.weights, rtol=0, atol=data["tolerance"])
    assert all(layer.pop("pool") == [1, 1] for layer in data["layers"])
    del data["tolerance"]
    assert data == json.loads(json.dumps(to_json(view)))
    assert from_json(data, weights).layers[0].rows == view.layers[0].rows


def test_the_policy_has_the_hashes_of_script_and_style():
    text = page_text(text_view())
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text)[1]
    assert policy.startswith("default-src 'none'; ")
    for tag, directive in (('script type="module"', "script-src"), ("style", "style-src")):
        content = re.search(rf"<{tag}>(.*?)</", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/1998/Math", "")


def test_text_of_a_view_cannot_end_the_script():
    text = page_text(text_view())
    assert text.count("<script") == text.count("</script>") == 2
    title = replace(text_view(), model="</title><script>alert(1)</script>")
    assert "alert(1)</script>" not in page_text(title)


def test_code_has_at_most_42_kb():
    data = json.dumps(page_data(text_view()), ensure_ascii=False, separators=(",", ":"))
    code = page_text(text_view()).replace(data.replace("<", "\\u003c"), "")
    assert len(code.encode()) <= 42_000


def test_long_layers_are_pooled_until_the_page_is_full(monkeypatch):
    view = long_view(layers=3, heads=2, tokens=300)
    full = page_data(view)
    assert [layer["pool"] for layer in full["layers"]] == [(1, 1)] * 3
    size = sum(len(stored["data"]) for stored in full["weights"])
    monkeypatch.setattr("zoo_inspect.page.MAX_BYTES", size // 2)
    pooled = page_data(view)
    assert sorted(layer["pool"] for layer in pooled["layers"]) == [(1, 1), (3, 3), (3, 3)]
    for layer, stored in zip(pooled["layers"], pooled["weights"], strict=True):
        assert stored["shape"] == [2, 300 // layer["pool"][0], 300 // layer["pool"][1]]
    assert sum(len(stored["data"]) for stored in pooled["weights"]) <= size // 2


def test_pooling_takes_the_maximum_of_blocks():
    weights = torch.arange(15.0).view(1, 3, 5)
    assert pool_weights(weights, (2, 2)).tolist() == [[[6, 8, 9], [11, 13, 14]]]
    assert pool_weights(weights, (1, 1)) is weights


def test_the_last_layer_to_an_input_is_shown_first():
    assert page_data(text_view(layers=3))["first"] == 2
    assert page_data(VIEWS["steps"]())["first"] == 0


def test_texts_of_an_input_are_shown_as_text():
    view = replace(text_view(), inputs={"story": ["Mary left", "John ran"], "ids": [1, 2]})
    summary = page_data(view)["summary"]
    assert summary[:2] == [("story", "Mary left · John ran"), ("ids", "[1, 2]")]


def test_labels_are_stored_once():
    text = page_text(long_view(layers=12, heads=1, tokens=20))
    assert text.count("token19") == 1


def test_weights_that_are_not_finite_are_rejected():
    axis = Axis("source", ["a", "b"])
    view = make_view(LayerView("encoder.0", "self", torch.full((1, 2, 2), torch.nan), axis, axis))
    with pytest.raises(ZooError, match=r"the weights of 'encoder\.0' are not finite"):
        page_text(view)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: "<html></html>", "is not a page of 'zoo attend'"),
        (lambda text: text.replace('"format":"zoo-attention"', '"format":"x"'), "is not a page"),
        (lambda text: text.replace('"data":"', '"data":"AAAA'), "damaged"),
        (lambda text: text.replace('id="data">{', 'id="data">['), "damaged"),
        (lambda text: text.replace('"weights":[', '"weights":[3,'), "damaged"),
    ],
    ids=["other page", "other format", "other stream", "no JSON", "no weights"],
)
def test_files_that_are_not_pages_are_rejected(damage, message, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(damage(page_text(text_view())), encoding="utf-8")
    with pytest.raises(ZooError, match=message):
        read_page(path)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(ZooError, match=r"page\.html cannot be read"):
        read_page(tmp_path / "page.html")
    (tmp_path / "page.html").write_bytes(b"\xff\xfe")
    with pytest.raises(ZooError, match=r"page\.html cannot be read"):
        read_page(tmp_path / "page.html")


def test_a_page_in_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(ZooError, match="cannot be written"):
        write_page(text_view(), tmp_path / "missing" / "page.html")


def test_the_worst_error_is_in_the_page():
    data = page_data(make_view(*text_view().layers))
    assert 0 < max(stored["error"] for stored in data["weights"]) <= 0.002
    scores = softmax(1, 2, 5) * 50
    axis = Axis("source", list("abcde"))
    large = page_data(make_view(LayerView("x", "self", scores, Axis("q", ["1", "2"]), axis)))
    assert large["tolerance"] <= 0.002 * scores.max()
