"""Views in the terminal."""

import numpy as np
import torch

import zoo
from zoo_inspect.saving import select_layers
from zoo_inspect.terminal import render_view
from zoo_inspect.view import Axis, LayerView, View, choose_layers


def _text(view):
    return "\n".join(text.plain for text in render_view(view))


def _example(model):
    batch = model.example(1, 6, torch.Generator().manual_seed(0))
    return {"source": batch["source"][0].numpy()}


def test_the_last_layer_to_an_input_is_chosen_first():
    view = zoo.attend(zoo.compose("transformer-tiny", seed=0), [5, 6, 7], output=[8, 9])
    (path,) = choose_layers(view)
    assert path == [layer.path for layer in view.layers if layer.kind == "cross"][-1]
    assert "mean of 2 heads" in _text(select_layers(view, [path]))
    assert "head 2" in _text(select_layers(view, [path], [2]))


def test_long_inputs_are_pooled():
    view = zoo.attend(zoo.compose("bert-tiny", seed=0), [5] * 8)
    wide = view.layers[0].weights.repeat(1, 40, 40)
    labels = Axis("source", [str(i) for i in range(320)])
    layer = LayerView("a", "self", wide, labels, labels)
    text = _text(View("m", {}, None, [layer], {}, {}))
    assert len(text.splitlines()) < 200
    assert "319" not in text
    assert "320 x 320 weights in 48 x 64 cells: each is the maximum of several" in text


def test_glimpses_images_edges_and_frames():
    ram = zoo.compose("ram-tiny", seed=0)
    assert "step   1  x   5.0  y   5.0" in _text(zoo.attend(ram, _example(ram)))
    caption = zoo.compose("show-attend-tell-soft-tiny", seed=0)
    assert "█" in _text(zoo.attend(caption, _example(caption), output=[5]))
    graph = zoo.compose("graph-transformer-tiny", seed=0)
    edges = {"features": np.ones((3, 6), np.float32), "edges": np.array([[1, 0]])}
    assert "0 attends to 1      1.000" in _text(zoo.attend(graph, edges))
    wave = zoo.compose("wav2vec2-tiny", seed=0)
    assert "blank" in _text(zoo.attend(wave, _example(wave), output=[3]))
