"""Views that are computed again from what a file stores."""

import json

import numpy as np
import pytest

import zoo
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
    with pytest.raises(zoo.ZooError, match="cannot be read"):
        read_stored(tmp_path / "missing.json")
    with pytest.raises(zoo.ZooError, match="not a view of attention"):
        verify({})
    (tmp_path / "view.png").write_bytes(b"\x89PNG")
    with pytest.raises(zoo.ZooError, match=r"view.png cannot be verified.*the .html or .json file"):
        read_stored(tmp_path / "view.png")
