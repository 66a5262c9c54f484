from typing import Any

import pytest
import torch

import zoo
from zoo import SpecError, ZooError
from zoo_gat.edges import check_graph
from zoo_gat.node_classifier import NodeClassifier

TINY = ["gat-tiny", "gatv2-tiny", "graph-transformer-tiny"]


def compose(**changes: Any) -> zoo.Model:
    encoder = {
        "type": "graph-attention",
        "layers": 1,
        "hidden": 3,
        "attention": {"scorer": "gat"},
    }
    model = {"type": "node-classifier", "features": 2, "classes": 3, "encoder": encoder}
    return zoo.compose({"zoo": 1, "name": "test", "model": model | changes})


def batch(**changes: Any) -> dict[str, torch.Tensor]:
    return {
        "features": torch.randn(1, 4, 2),
        "edges": torch.tensor([[[0, 1], [1, 2]]]),
        "target": torch.tensor([[0, 1, 2, 0]]),
    } | changes


def test_logits_are_the_states_or_a_linear_map_of_them():
    graph = batch()
    unmapped = compose(readout="states")
    mapped = compose(readout="linear")
    mapped.encoder.load_state_dict(unmapped.encoder.state_dict())
    expected = mapped.out(unmapped(graph).logits)
    torch.testing.assert_close(mapped(graph).logits, expected)


def test_mask_defaults_to_all_nodes():
    model = compose()
    assert model(batch()).mask.all()
    train = torch.tensor([[True, False, False, True]])
    assert torch.equal(model(batch(mask=train)).mask, train)


def test_targets_do_not_affect_logits():
    model = compose()
    graph = batch()
    other = graph | {"target": graph["target"] * 0, "mask": torch.zeros(1, 4, dtype=torch.bool)}
    assert torch.equal(model(graph).logits, model(other).logits)


def test_multi_label_targets():
    model = compose(multi_label=True)
    example = model.example(2, 4, torch.Generator().manual_seed(0))
    assert example["target"].shape == (2, 4, 3)
    assert example["target"].dtype == torch.float32
    assert model(example).targets.shape == model(example).logits.shape


def test_a_batch_of_graphs_matches_the_graphs():
    model = compose()
    first, second = batch(), batch(edges=torch.tensor([[[3, 0]]]))
    short = {name: tensor[:, :3] for name, tensor in first.items()}
    padded = {
        "features": torch.cat(
            [torch.cat([short["features"], torch.zeros(1, 1, 2)], 1), second["features"]]
        ),
        "edges": torch.tensor([[[0, 1], [1, 2]], [[3, 0], [-1, -1]]]),
        "target": torch.zeros(2, 4, dtype=torch.long),
    }
    logits = model(padded).logits
    torch.testing.assert_close(logits[:1, :3], model(short).logits)
    torch.testing.assert_close(logits[1:], model(second).logits)


def test_readout_states_requires_width_classes():
    with pytest.raises(SpecError, match=r"readout.*classes is 4.*output_dim is 3"):
        compose(readout="states", classes=4)


def test_an_encoder_without_edges_raises():
    with pytest.raises(SpecError, match=r"encoder 'gru'.*edges"):
        compose(encoder={"type": "gru", "hidden": 3})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": torch.randn(4, 2)}, r"'features'.*\[4, 2\].*\[B, N, 2\]"),
        ({"features": torch.randn(1, 4, 5)}, r"'features'.*\[1, 4, 5\].*\[B, N, 2\]"),
        ({"target": torch.zeros(1, 3).long()}, r"'target'.*\[1, 3\].*\[B, N\].*N = 4"),
        ({"target": torch.zeros(1, 4, 3)}, r"'target'.*\[1, 4, 3\].*\[B, N\]"),
        ({"mask": torch.ones(4).bool()}, r"'mask'.*\[4\].*\[B, N\].*N = 4"),
        ({"edges": torch.rand(1, 2, 2)}, "'edges'.*torch.float32"),
        ({"edges": torch.tensor([[[0, 4]]])}, "'edges'.*contains 4.*from -1 to 3"),
    ],
)
def test_invalid_batches_raise(changes, message):
    with pytest.raises(ZooError, match=message):
        compose()(batch(**changes))


def test_check_graph_validates_a_batch():
    check_graph(batch())
    with pytest.raises(ZooError, match=r"edge 0 of graph 0 is \[4, 0\]"):
        check_graph(batch(edges=torch.tensor([[[4, 0]]])))
    with pytest.raises(ZooError, match=r"features.*\[B, N, F\].*\[4, 2\]"):
        check_graph(batch(features=torch.randn(4, 2)))


def test_generate_raises():
    with pytest.raises(ZooError, match="model 'node-classifier' does not support generation"):
        compose().prepare_generation(batch())


@pytest.mark.parametrize("spec", TINY)
def test_bfloat16_is_close_to_float32(spec):
    full, half = zoo.compose(spec), zoo.compose(spec, dtype="bfloat16")
    graph = full.example(3, 6, torch.Generator().manual_seed(1))
    half_graph = {k: v.bfloat16() if v.is_floating_point() else v for k, v in graph.items()}
    expected, logits = full(graph).logits, half(half_graph).logits
    assert logits.dtype == torch.bfloat16
    assert (logits.float() - expected).abs().max() <= 0.05 * expected.abs().max()
    logits.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in half.parameters())


def test_graphs_of_any_size_compile_without_graph_breaks():
    model = zoo.compose("gat-tiny").eval()
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=True)
    for size in (5, 7, 12):
        graph = model.example(2, size, torch.Generator().manual_seed(size))
        torch.testing.assert_close(compiled(graph).logits, model(graph).logits)


def test_version_1_is_migrated():
    params, _ = NodeClassifier.migrate(1, {"classes": 4, "read": "states"}, {})
    assert params == {"classes": 4, "readout": "states"}
