"""Views that are computed again from what a file stores."""

import base64
import json
import zlib
from dataclasses import replace

import numpy as np
import pytest

import zoo
from zoo_inspect.page import write_page
from zoo_inspect.saving import select_layers
from zoo_inspect.verification import read_stored, verify

G2P = "g2p-bahdanau"


@pytest.fixture(scope="module")
def view():
    return zoo.attend(G2P, "attention", max_length=3)


@pytest.mark.parametrize("suffix", ["json", "html"])
def test_a_file_is_the_same_as_the_model_computes(view, suffix, tmp_path):
    view.save(tmp_path / f"view.{suffix}")
    found = verify(read_stored(tmp_path / f"view.{suffix}"))
    assert found.ok, str(found)
    assert "the same" in str(found)


def test_another_weight_is_found(view, tmp_path):
    view.save(tmp_path / "view.json")
    data = json.loads((tmp_path / "view.json").read_text())
    data["weights"][0][0][1][2] += 0.01
    found = verify(data)
    assert not found.ok
    assert found.largest["decoder.attention"] == pytest.approx(0.01, rel=1e-3)
    assert "decoder.attention: a weight differs by 0.01" in str(found)


def test_another_label_is_found(view, tmp_path):
    view.save(tmp_path / "view.json")
    data = json.loads((tmp_path / "view.json").read_text())
    data["layers"][0]["columns"]["labels"][0] = "X"
    assert "'source' has other labels" in str(verify(data))


def _set(*path, to):
    """Return a function that sets a value in the data of a view."""

    def change(data):
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("tolerance", to=9.0), "a weight differs"),
        (_set("weights", 0, 0, 0, 1, to=float("nan")), "a weight differs"),
        (_set("output", to="another"), "output"),
        (_set("model", to="another"), "model"),
        (_set("layers", 0, "kind", to="self"), "kind"),
        (_set("layers", 0, "equations", 0, "text", to="x"), "equations"),
        (_set("spec", "name", to="another"), "spec"),
        (_set("images", to={"source": {"array": "|u1", "shape": [0], "base64": ""}}), "images"),
    ],
)
def test_what_is_not_as_computed_again_is_found(change, message, view, tmp_path):
    view.save(tmp_path / "view.json")
    data = read_stored(tmp_path / "view.json")
    data["weights"][0][0][1][2] += 0.01 * (message == "a weight differs")
    change(data)
    found = verify(data)
    assert not found.ok
    assert message in str(found)


@pytest.mark.parametrize(
    "change",
    [
        _set("layers", to=3),
        _set("layers", 0, "rows", to=None),
        _set("layers", 0, "pool", to=[0, -1]),
        _set("weights", to=[]),
        _set("weights", 0, to="x"),
        _set("provenance", to={}),
        _set("provenance", "output", to=[10**9]),
        _set("provenance", "output", to=["x"]),
        _set("provenance", "model", "reference", to=[1]),
        _set("inputs", to={}),
        _set("inputs", "source", to={"array": "O", "shape": [1], "base64": "AAAA"}),
        _set("inputs", "source", to={"file": "..", "base64": "AAAA"}),
        _set("tolerance", to="x"),
        _set("version", to=None),
    ],
)
def test_data_of_other_types_are_rejected(change, view, tmp_path):
    view.save(tmp_path / "view.json")
    data = read_stored(tmp_path / "view.json")
    change(data)
    with pytest.raises(zoo.ZooError):
        verify(data)


def test_a_compressed_input_of_many_zeros_is_rejected(view, tmp_path):
    view.save(tmp_path / "view.json")
    data = read_stored(tmp_path / "view.json")
    zeros = base64.b64encode(zlib.compress(bytes(10**7))).decode()
    data["inputs"]["source"] = {"array": "|u1", "shape": [3], "zlib": zeros}
    with pytest.raises(zoo.ZooError, match="at most 3 bytes"):
        verify(data)


_SCRIPT = '<script type="application/json" id="data">'


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("<title>", "<title>Not "),
        lambda text: text.replace("</main>", "</main><p>more"),
        lambda text: text.replace(_SCRIPT, f"<!--{_SCRIPT}", 1).replace(
            "</script>", f"</script>-->{_SCRIPT}{{}}</script>", 1
        ),
        lambda text: text.replace('["source","attention"]', '["source","another"]'),
        lambda text: text.replace('"quantum":0.0036', '"quantum":0.36'),
    ],
    ids=["title", "text", "other data", "summary", "quantum"],
)
def test_another_page_is_found(change, view, tmp_path):
    path = tmp_path / "view.html"
    view.save(path)
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))
    assert "page" in str(verify(read_stored(path)))


def test_a_page_of_another_version_is_compared_without_its_script(view, tmp_path):
    other = replace(view, provenance={**view.provenance, "zoo": "0.0"})
    write_page(other, tmp_path / "view.html")
    path = tmp_path / "view.html"
    path.write_text(path.read_text().replace("<title>", "<title>The "))
    found = verify(read_stored(path))
    assert found.ok
    assert "zoo 0.0 has written it" in str(found)


def test_another_model_is_found(tmp_path):
    model, other = (zoo.compose("bert-tiny", seed=seed) for seed in (0, 1))
    zoo.attend(model, [5, 6, 7]).save(tmp_path / "view.json")
    data = read_stored(tmp_path / "view.json")
    assert verify(data, model=model).ok
    assert "other weights" in str(verify(data, model=other))
    with pytest.raises(zoo.ZooError, match="model in memory"):
        verify(data)


def test_chosen_layers_and_heads(tmp_path):
    model = zoo.compose("bert-tiny", seed=0)
    view = select_layers(zoo.attend(model, [5, 6, 7]), ["encoder.blocks.1.*"], [2])
    view.save(tmp_path / "view.json")
    found = verify(read_stored(tmp_path / "view.json"), model=model)
    assert found.ok
    assert list(found.largest) == ["encoder.blocks.1.attention"]


def test_files_and_arrays_are_stored_with_their_content(tmp_path):
    from PIL import Image

    image = np.zeros((28, 28), np.uint8)
    image[4:24, 12:16] = 255
    Image.fromarray(image).save(tmp_path / "one.png")
    view = zoo.attend("ram-mnist", str(tmp_path / "one.png"))
    view.save(tmp_path / "view.json")
    (tmp_path / "one.png").unlink()
    data = read_stored(tmp_path / "view.json")
    assert data["inputs"]["source"]["file"] == "one.png"
    assert verify(data).ok
    zoo.attend("ram-mnist", image[..., None]).save(tmp_path / "array.json")
    assert verify(read_stored(tmp_path / "array.json")).ok


def test_files_that_are_no_views_are_rejected(tmp_path):
    (tmp_path / "view.json").write_text("{")
    with pytest.raises(zoo.ZooError, match=r"view.json:1 is not valid JSON"):
        read_stored(tmp_path / "view.json")
    (tmp_path / "view.json").write_text("[" * 99_999)
    with pytest.raises(zoo.ZooError, match=r"view.json is not valid JSON: it is nested too deeply"):
        read_stored(tmp_path / "view.json")
    (tmp_path / "view.json").write_text("[]")
    with pytest.raises(zoo.ZooError, match="not a view of attention"):
        verify(read_stored(tmp_path / "view.json"))
    with pytest.raises(zoo.ZooError, match="cannot be read"):
        read_stored(tmp_path / "missing.json")
    with pytest.raises(zoo.ZooError, match="not a view of attention"):
        verify({})
    (tmp_path / "view.png").write_bytes(b"\x89PNG")
    with pytest.raises(zoo.ZooError, match=r"view.png cannot be verified.*the .html or .json file"):
        read_stored(tmp_path / "view.png")
