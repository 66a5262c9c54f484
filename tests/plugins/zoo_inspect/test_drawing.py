"""Pictures: texts do not overlap and are not cut off; heat maps are images."""

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import zoo
from zoo_inspect.drawing import draw_view
from zoo_inspect.graph_panel import DIAMETER, choose_nodes, place_nodes
from zoo_inspect.heat_panel import thumbnail_scale
from zoo_inspect.image_panel import place_numbers
from zoo_inspect.node_labels import label_nodes
from zoo_inspect.panels import Ruler
from zoo_inspect.saving import save_view, select_layers
from zoo_inspect.view import Axis, Equation, LayerView, View

ADDITIVE = Equation("scorer", "additive", r"a(q, k) = v^\top \tanh(W q + U k)", "A paper", {})


def _view(T, S, H=1, layers=1, label="word", kind="cross", **values):
    rows, columns = (
        Axis(name, [f"{label}{i}" for i in range(n)]) for name, n in (("output", T), ("source", S))
    )
    weights = torch.rand(H, T, S, generator=torch.Generator().manual_seed(0)).softmax(-1)
    shown = [
        LayerView(f"decoder.blocks.{i}.cross", kind, weights, rows, columns, [ADDITIVE])
        for i in range(layers)
    ]
    return View("a-model", {"source": "a text"}, "its output", shown, {}, {}, **values)


def _images(layer_kind="cross", grid=(4, 6), T=3, extra=0):
    S = grid[0] * grid[1] + extra
    view = _view(S if layer_kind == "self" else T, S, H=2, kind=layer_kind)
    columns = Axis("source", [str(i) for i in range(S)], grid)
    layer = replace(view.layers[0], columns=columns)
    pixels = torch.zeros(grid[0] * 4, grid[1] * 4, 3, dtype=torch.uint8)
    return replace(view, layers=[layer], images={"source": pixels})


def _graph(nodes, edges, name="{}"):
    axis = Axis("node", [name.format(i) for i in range(nodes)])
    layer = LayerView("encoder.layers.0", "edges", torch.rand(2, edges), axis, axis, [ADDITIVE])
    pairs = torch.randint(0, nodes, (2, edges), generator=torch.Generator().manual_seed(0))
    return View("a-graph", {}, None, [layer], {}, {}, edges=pairs)


def _frames():
    view = _view(12, 6, kind="ctc")
    path = torch.tensor([0, 0, 1, 1, 0, 2, 2, 2, 0, 3, 3, 0])
    return replace(view, layers=[replace(view.layers[0], chosen=path)])


VIEWS = {
    "letters": _view(3, 4, label=""),
    "words": _view(6, 9, H=4, layers=2),
    "long words": _view(5, 5, label="internationalisation-" * 2),
    "one cell": _view(1, 1),
    "one row": _view(1, 40),
    "mathematics": _view(3, 3, label="$x_{"),
    "long": _view(300, 300),
    "thumbnails": _view(60, 60, H=8, layers=2),
    "image": _images(),
    "self over an image": _images("self", extra=1),
    "glimpses": _images("glimpses"),
    "graph": _graph(12, 30),
    "large graph": _graph(400, 3000),
    "classes of nodes": _graph(12, 30, "n{} · red"),
    "titles of nodes": _graph(12, 30, "A study of the attention of networks {}"),
    "titles of many nodes": _graph(400, 3000, "A study of the attention of networks $x_{{{}"),
    "frames": _frames(),
}


def _boxes(figure):
    """The boxes of all visible texts in pixels."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in texts]


@pytest.mark.parametrize("name", VIEWS)
def test_texts_do_not_overlap_and_are_not_cut_off(name):
    figure = draw_view(VIEWS[name])
    width, height = figure.get_size_inches() * figure.dpi
    boxes = _boxes(figure)
    assert boxes
    for text, box in boxes:
        assert min(box.x0, box.y0) >= 0, text
        assert box.x1 <= width, text
        assert box.y1 <= height, text
    for (text, box), (other_text, other) in itertools.combinations(boxes, 2):
        overlap = min(box.x1, other.x1) - max(box.x0, other.x0)
        height = min(box.y1, other.y1) - max(box.y0, other.y0)
        # The boxes of lines include the space between them.
        assert overlap <= 1 or height <= 0.2 * min(box.height, other.height), (text, other_text)


def test_heat_maps_are_images_in_svg(tmp_path):
    view = VIEWS["words"]
    save_view(view, tmp_path / "view.svg")
    text = (tmp_path / "view.svg").read_text()
    heads, bars = 8, 2
    assert text.count("<image") == heads + bars
    assert len(text) < 400_000


def test_pictures_are_the_same_every_time(tmp_path):
    for name in ("a.svg", "b.svg"):
        save_view(VIEWS["letters"], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_many_layers_are_thumbnails_and_a_chosen_one_has_labels():
    many = VIEWS["thumbnails"]
    labels = {text for text, _ in _boxes(draw_view(many))}
    assert "word0" not in labels
    assert any(label.startswith("head 8, max.") for label in labels)
    chosen = select_layers(many, ["decoder.blocks.1.*"], [2])
    labels = {text for text, _ in _boxes(draw_view(chosen))}
    assert {"word0", "word59", "head 2"} <= labels


def test_a_single_large_weight_does_not_darken_a_thumbnail():
    weights = torch.full((300, 300), 1 / 300)
    assert thumbnail_scale(weights) == (pytest.approx(1 / 300), "max. 0.0033")
    weights[0, 0] = 0.7
    assert thumbnail_scale(weights) == (pytest.approx(1 / 300), "max. ≥ 0.0033")
    assert thumbnail_scale(torch.eye(64))[0] == 1.0


def test_thumbnails_have_their_own_scales():
    many = VIEWS["thumbnails"]
    layers = [replace(layer, weights=layer.weights * 0.5) for layer in many.layers[:1]]
    texts = {text for text, _ in _boxes(draw_view(replace(many, layers=[*layers, *many.layers])))}
    assert {text.split(", ")[0] for text in texts} >= {"head 1", "head 8"}
    assert len({text for text in texts if text.startswith("head 1, max. 0.0")}) == 2


def test_a_long_title_does_not_widen_the_picture():
    view = _view(6, 6)
    figure = draw_view(replace(view, inputs={"source": "a word " * 40}, output="a word " * 40))
    assert figure.get_figwidth() == draw_view(view).get_figwidth()


def test_characters_without_a_glyph_are_measured_without_a_warning():
    assert Ruler().width("🙂") > 0


def test_the_start_of_a_word_is_a_dot():
    texts = {text for text, _ in _boxes(draw_view(_view(2, 2, label="▁casa")))}
    assert "·casa0" in texts


def test_the_caption_has_equation_paper_and_parameters():
    equation = replace(ADDITIVE, parameters={"hidden": 160})
    layer = replace(VIEWS["letters"].layers[0], equations=[equation])
    texts = [t for t, _ in _boxes(draw_view(replace(VIEWS["letters"], layers=[layer])))]
    assert "scorer additive (hidden = 160): A paper" in texts
    assert any(re.search(r"\\tanh\(W q \+ U k\)", text) for text in texts)


def test_an_equation_that_matplotlib_does_not_know_is_a_text():
    layer = replace(VIEWS["letters"].layers[0], equations=[replace(ADDITIVE, text=r"\unknown{x}")])
    texts = [t for t, _ in _boxes(draw_view(replace(VIEWS["letters"], layers=[layer])))]
    assert r"\unknown{x}" in texts


def test_a_graph_is_drawn_around_the_node_with_the_most_edges():
    target = torch.tensor([7] * 50 + list(range(50)))
    source = torch.cat([torch.arange(50) + 10, torch.arange(50) + 100])
    nodes = choose_nodes(torch.stack([target, source]), torch.rand(100), count=20)
    assert len(nodes) == 20
    assert 7 in nodes


def test_nodes_have_names_classes_or_numbers_with_a_note():
    def texts(name):
        return [text for text, _ in _boxes(draw_view(VIEWS[name]))]

    assert "The number of a node is its place in the graph, from 0." in texts("graph")
    assert {"n3", "red"} <= set(texts("classes of nodes"))
    beside = [text for text in texts("titles of nodes") if text.startswith("A study")]
    assert beside == ["A study of the attent…"] * 22  # 11 nodes with edges in each of 2 heads


def test_names_of_nodes_without_room_are_below_the_picture():
    names = [f"A study of the attention of graph networks, part {i}" for i in range(30)]
    places = np.stack([np.linspace(0, 1, 30), np.full(30, 0.5)], axis=1)
    labels = label_nodes(names, [3, 17, *range(20, 30)], places[:12] / 2, DIAMETER, Ruler())
    assert labels.beside == ()
    assert labels.circles[:2] == ("3", "17")
    first = "Nodes: 3 A study of the attention of graph netwo…; 17 A study"
    assert labels.note.startswith(first)


def test_neighbours_are_close_to_each_other():
    edges = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])  # two triangles
    places = torch.from_numpy(place_nodes(edges, torch.arange(6)))
    distance = torch.cdist(places, places)
    assert distance[0, 1] < distance[0, 3]
    assert (places.min(), places.max()) == (0, 1)


def test_windows_of_glimpses_are_numbered_where_there_is_room():
    windows = [(8.0, 8.0, 6.0, 6.0), (8.5, 8.0, 6.0, 6.0), (20.0, 20.0, 6.0, 6.0)]
    places = place_numbers([*windows, *[windows[0]] * 4], 28, 28)
    assert {1, 2, 3} <= places.keys() < {1, 2, 3, 4, 5, 6, 7}
    distances = [math.dist(a, b) for a, b in itertools.combinations(places.values(), 2)]
    assert min(distances) > 28 / 16  # of a panel with 1.5 inches
    texts = [text for text, _ in _boxes(draw_view(VIEWS["glimpses"]))]
    assert "1" in texts


def test_steps_of_a_memory_go_from_left_to_right():
    texts = dict(_boxes(draw_view(_view(2, 3, kind="memory"))))
    assert texts["output"].y0 > texts["source"].y1  # the name of columns is above


def test_a_shipped_model(tmp_path):
    view = zoo.attend("g2p-bahdanau", "zoo")
    view.save(tmp_path / "view.png")
    assert (tmp_path / "view.png").read_bytes().startswith(b"\x89PNG")
