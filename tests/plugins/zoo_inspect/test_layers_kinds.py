"""What is shown of each kind of model: images, glimpses, graphs, frames, memories, vectors."""

import json

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import zoo
from zoo_inspect.image_panel import find_window
from zoo_inspect.layers import record_pass
from zoo_inspect.stored import to_json, weights_to_json
from zoo_inspect.verification import verify


def _compose(name, **values):
    return zoo.compose(name, overrides=[f"{k}={v}" for k, v in values.items()], seed=0)


def _example(model, length=6):
    batch = model.example(1, length, torch.Generator().manual_seed(0))
    optional = {k for k, field in model.batch_schema(inference=True).items() if field.optional}
    return {key: tensor[0].numpy() for key, tensor in batch.items() if key not in optional}


def test_vision_transformer():
    view = zoo.attend(_compose("vit-tiny"), {"source": np.ones((3, 8, 12), np.float32)})
    layer = view.layers[0]
    assert layer.kind == "self"
    height, width = layer.columns.grid
    assert (height * 12, layer.columns.labels[0]) == (width * 8, "extra 1")
    assert len(layer.columns.labels) == height * width + 1
    assert view.images["source"].shape == (8, 12, 3)
    assert view.images["source"].dtype == torch.uint8


def test_captions_attend_to_parts_of_the_image():
    model = _compose("show-attend-tell-soft-tiny")
    view = zoo.attend(model, _example(model), output=[5, 6])
    (layer,) = view.layers
    assert (layer.kind, layer.rows.labels) == ("cross", ["5", "6", "2"])
    assert layer.columns.grid is not None
    assert_close(layer.weights.sum(-1), torch.ones(1, 3))


def test_glimpses_of_ram_are_at_the_locations_of_the_model():
    model = _compose("ram-tiny")
    image = np.zeros((1, 10, 10), np.float32)
    image[0, 2:5, 6:9] = 1
    view = zoo.attend(model, {"source": image})
    (layer,) = view.layers
    assert (layer.kind, layer.columns.grid) == ("glimpses", (10, 10))
    model.eval()
    batch = {"source": torch.from_numpy(image)[None], "target": torch.zeros(1, dtype=torch.long)}
    locations = model(batch).extras["locations"][0]
    window = model.retina.size
    for step, (x, y) in zip(layer.weights[0], ((locations + 1) / 2 * 10).tolist(), strict=True):
        found = find_window(step.view(10, 10), 10, 10)
        inside = all(window / 2 <= at <= 10 - window / 2 for at in (x, y))
        if inside:  # a window that is cut at the edge has another centre
            assert found == pytest.approx((x, y, window, window), abs=0.4)
            assert float(step.sum()) == pytest.approx(1)


def test_draw_shows_where_it_reads_and_writes():
    model = _compose("draw-tiny")
    view = zoo.attend(model, _example(model))
    assert [layer.path for layer in view.layers] == ["read", "write"]
    for layer in view.layers:
        assert (layer.kind, layer.columns.grid) == ("glimpses", (8, 7))
        assert_close(layer.weights.sum(-1), torch.ones(1, model.steps))


def test_graphs_have_the_weights_of_their_edges():
    model = _compose("graph-transformer-tiny")
    features = np.random.default_rng(0).random((4, 6)).astype(np.float32)
    pairs = np.array([[1, 0], [2, 0], [3, 2]])  # source, target
    view = zoo.attend(model, {"features": features, "edges": pairs})
    layer = view.layers[0]
    assert layer.kind == "edges"
    assert layer.rows.labels == ["0", "1", "2", "3"]
    assert view.edges[:, :3].tolist() == [[0, 0, 2], [1, 2, 3]]  # target, source
    total = torch.zeros(len(layer.weights), 4).index_add(1, view.edges[0], layer.weights)
    reached = view.edges[0].unique()
    assert_close(total[:, reached], torch.ones(len(layer.weights), len(reached)))


def test_frames_have_posteriors_and_the_path_of_the_output():
    model = _compose("wav2vec2-tiny")
    view = zoo.attend(model, _example(model, 12), output=[3, 4])
    layer = view.layers[-1]
    assert (layer.kind, layer.columns.labels[0]) == ("ctc", "blank")
    assert_close(layer.weights.sum(-1), torch.ones(layer.weights.shape[:2]))
    symbols = [symbol for symbol in layer.chosen.unique_consecutive().tolist() if symbol]
    assert symbols == [3, 4]


def test_positions_of_sound_are_seconds():
    rate = 80
    preprocessing = "{source: {type: audio, rate: 80}}"
    model = _compose("wav2vec2-tiny", preprocessing=preprocessing)
    samples = np.sin(np.arange(80) / 20).astype(np.float32)
    view = zoo.attend(model, zoo.plugin.Audio(samples, rate), output=[3])
    labels = view.layers[0].rows.labels
    seconds = [float(label.removesuffix(" s")) for label in labels]
    assert (seconds[0] + seconds[-1]) / 2 == pytest.approx(0.5, abs=0.01)
    data = {**to_json(view), "weights": weights_to_json(view)}
    assert verify(json.loads(json.dumps(data)), model=model).ok


@pytest.mark.parametrize("name", ["ntm-tiny", "dnc-tiny"])
def test_memories_have_reads_and_writes(name):
    model = _compose(name)
    view = zoo.attend(model, _example(model))
    reads, writes = view.layers
    assert (reads.path, writes.path) == ("encoder.reads", "encoder.writes")
    assert {layer.kind for layer in view.layers} == {"memory"}
    assert (reads.weights.shape[1:], writes.weights.shape[0]) == ((6, model.encoder.slots), 1)
    assert len(reads.weights) == model.encoder.read_heads
    assert (reads.columns.name, reads.rows.name) == ("slot", "source")


def test_memory_networks_have_a_row_for_each_hop():
    model = _compose("memory-network-tiny", **{"model.empty_memories": "false"})
    story = np.array([[5, 6, 0], [7, 8, 9], [4, 0, 0]])
    view = zoo.attend(model, {"story": story, "question": np.array([5, 9])})
    (layer,) = view.layers
    assert layer.kind == "memory"
    assert (layer.rows.name, len(layer.rows.labels)) == ("step", model.hops)
    assert (layer.columns.name, layer.columns.labels) == ("story", ["5 6", "7 8 9", "4"])


def test_facts_fill_a_memory_of_fixed_size():
    model = _compose("memory-network-tiny", **{"model.empty_memories": "true"})
    story = np.array([[5, 6, 0], [7, 8, 9], [4, 0, 0], [5, 5, 5]])
    inputs = {"story": story, "question": np.array([5, 9])}
    view = zoo.attend(model, inputs)
    (layer,) = view.layers
    empty = f"{model.memory_size - 4} empty"
    assert (layer.kind, layer.columns.name) == ("memory", "story")
    assert layer.columns.labels == ["5 6", "7 8 9", "4", "5 5 5", empty]
    batch = {key: torch.from_numpy(value)[None] for key, value in inputs.items()}
    log, outputs = record_pass(model, batch | {"target": torch.zeros(1, dtype=torch.long)})
    weights = torch.cat(log["attention"], dim=2)[0]
    assert_close(layer.weights[..., :4], weights[..., :4])
    assert_close(layer.weights[..., 4], weights[..., 4:].sum(-1))
    best = outputs.logits[0, 0].softmax(-1).max(-1)
    assert view.output == f"{best.indices} (p = {best.values:.3f})"


def test_slots_that_are_not_facts_keep_their_numbers():
    """The slots of a DNC are written one after the other, but are not positions of its input."""
    view = zoo.attend(_compose("dnc-tiny"), {"source": np.array([5, 6, 7, 8])})
    assert {layer.columns.name for layer in view.layers} == {"slot"}


def test_dynamic_memory_records_its_gates():
    spec = {
        "zoo": 1,
        "name": "gates",
        "model": {
            "type": "dynamic-memory",
            "source": {"type": "token", "vocab": 12, "dim": 4},
            "encoder": {"type": "gru", "hidden": 4, "bidirectional": False},
            "episodes": 2,
        },
    }
    story, question = np.array([[5, 6], [7, 8], [4, 9]]), np.array([5, 9])
    (layer,) = zoo.attend(zoo.compose(spec, seed=0), {"story": story, "question": question}).layers
    assert (layer.kind, tuple(layer.weights.shape)) == ("memory", (1, 2, 3))
    assert bool(((layer.weights > 0) & (layer.weights < 1)).all())


def test_grids_of_tokens():
    view = zoo.attend(_compose("sketch-tiny"), {"source": np.array([[0, 1, 2], [3, 2, 1]])})
    layer = view.layers[0]
    assert (layer.kind, layer.columns.grid) == ("self", (2, 3))
    assert layer.columns.labels == ["0", "1", "2", "3", "2", "1"]


def test_models_of_vectors():
    view = zoo.attend(_compose("minilm-tiny"), [5, 6, 7])
    assert {layer.kind for layer in view.layers} == {"self"}
    assert view.layers[0].columns.labels == ["5", "6", "7"]


def test_a_learned_query_pools():
    spec = {
        "zoo": 1,
        "name": "pooled",
        "model": {
            "type": "graph-classifier",
            "features": 3,
            "classes": 2,
            "pooling": "attention",
            "scorer": "dot",
            "encoder": {
                "type": "graph-attention",
                "layers": 1,
                "hidden": 4,
                "heads": 1,
                "output": 4,
                "attention": {"scorer": "gat"},
            },
        },
    }
    graph = {"features": np.ones((3, 3), np.float32), "edges": np.array([[0, 1], [1, 2]])}
    view = zoo.attend(zoo.compose(spec, seed=0), graph)
    pooling = view.layers[-1]
    assert (pooling.kind, pooling.rows.name) == ("pooling", "query")
    assert_close(pooling.weights.sum(-1), torch.ones(1, 1))


def test_layers_that_share_a_module_have_a_view_each():
    model = _compose("bert-tiny", **{"model.encoder.share_layers": "true"})
    paths = [layer.path for layer in zoo.attend(model, [5, 6, 7]).layers]
    assert [path.rpartition("#")[2] for path in paths] == ["1", "2"]
