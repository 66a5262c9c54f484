"""Views as files, in notebooks, and with chosen layers and heads."""

import html

import pytest
import torch
from view_kit import make_view

import zoo
from zoo_inspect.saving import save_view, select_layers
from zoo_inspect.view import Axis, LayerView


@pytest.fixture(scope="module")
def view():
    return zoo.attend(zoo.compose("bert-tiny", seed=0), [5, 6, 7])


@pytest.mark.parametrize("suffix", ["html", "png", "svg", "json"])
def test_the_suffix_is_the_format(view, suffix, tmp_path):
    path = tmp_path / f"view.{suffix}"
    view.save(path)
    starts = {"html": b"<!", "png": b"\x89PNG", "svg": b"<?xml", "json": b"{"}
    assert path.read_bytes().startswith(starts[suffix])


def test_other_suffixes_are_rejected(view, tmp_path):
    with pytest.raises(zoo.ZooError, match=r"one of \.html, \.png, \.svg, \.json"):
        view.save(tmp_path / "view.gif")


def test_a_folder_that_does_not_exist_is_named(view, tmp_path):
    with pytest.raises(zoo.ZooError, match=r"cannot be written: there is no folder .*missing"):
        view.save(tmp_path / "missing" / "view.json")


@pytest.mark.parametrize("suffix", [".html", ".json", ".svg"])
def test_half_of_a_surrogate_pair_is_rejected(suffix, tmp_path):
    axis = Axis("source", ["a", "\ud83d"])
    view = make_view(LayerView("encoder", "self", torch.full((1, 2, 2), 0.5), axis, axis))
    with pytest.raises(
        zoo.ZooError, match=r"'\\ud83d' is half of a surrogate pair, which UTF-8 cannot"
    ):
        save_view(view, tmp_path / f"view{suffix}")
    assert not list(tmp_path.iterdir())


def test_a_notebook_shows_the_page_in_a_frame(view):
    text = view._repr_html_()
    assert text.startswith('<iframe srcdoc="')
    assert html.unescape(text.split('"')[1]).lower().startswith("<!doctype html>")


def test_layers_and_heads_are_chosen_by_pattern_and_number(view):
    chosen = select_layers(view, ["*.1.attention"], [2])
    (layer,) = chosen.layers
    assert layer.path == "encoder.blocks.1.attention"
    assert layer.weights.equal(view.layers[1].weights[1:])
    assert chosen.provenance["heads"] == [2]
    with pytest.raises(zoo.ZooError, match="no layer matches x; layers are encoder"):
        select_layers(view, ["x"])
    with pytest.raises(zoo.ZooError, match="has heads 1 to 2, not 3"):
        select_layers(view, [], [3])
