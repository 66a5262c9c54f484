from typing import Any

import pytest
import torch

import zoo
from zoo import SpecError, ZooError
from zoo.testing.configuration import configurations
from zoo.testing.laws import LAWS
from zoo.testing.run import run_law
from zoo_gat.graph_classifier import GraphClassifier

ATTENTION = {"pooling": "attention", "scorer": "dot"}
POOLINGS = [{"pooling": "mean"}, {"pooling": "sum"}, {"pooling": "max"}, ATTENTION]


def compose(**changes: Any) -> zoo.Model:
    encoder = {
        "type": "graph-attention",
        "layers": 2,
        "hidden": 3,
        "heads": 2,
        "attention": {"scorer": "gat"},
    }
    model = {"type": "graph-classifier", "features": 2, "classes": 3, "encoder": encoder}
    return zoo.compose({"zoo": 1, "name": "test", "model": model | changes}, seed=0).eval()


def batch(**changes: Any) -> dict[str, torch.Tensor]:
    return {
        "features": torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(0)),
        "edges": torch.tensor([[[0, 1], [1, 2], [3, 0]], [[0, 1], [-1, -1], [-1, -1]]]),
        "target": torch.tensor([0, 2]),
        "mask": torch.tensor([[True, True, True, True], [True, True, False, False]]),
    } | changes


def _encode(model, features, edges):
    """Compute the states of one graph [N, D] with a dense matrix of its edges."""
    states = features
    for index, layer in enumerate(model.encoder.layers):
        x = torch.nn.functional.elu(states) if index else states
        linked = torch.eye(len(x), dtype=torch.bool)
        for source, target in edges:
            linked[target, source] = True
        heads = []
        for head, scorer in enumerate(layer.scorers):
            rows = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
            values = x @ layer.key.weight[rows].T
            scores = (values @ scorer.u.weight.T) + (values @ scorer.v.weight.T).T
            scores = torch.where(scores > 0, scores, 0.2 * scores)
            heads.append(scores.masked_fill(~linked, -torch.inf).softmax(dim=1) @ values)
        states = torch.cat(heads, 1) if layer.merge == "concat" else torch.stack(heads).mean(0)
        states = states + layer.bias
    return states


def _pool(model, states):
    if model.pooling == "attention":
        weights = (states @ model.pool.query).exp()
        return (weights[:, None] * states).sum(0) / weights.sum()
    if model.pooling == "max":
        return torch.stack([column.max() for column in states.T])
    return states.sum(0) / (len(states) if model.pooling == "mean" else 1)


@pytest.mark.parametrize("pooling", POOLINGS, ids=lambda params: params["pooling"])
@torch.no_grad()
def test_logits_match_a_dense_computation_of_each_graph(pooling):
    model, graphs = compose(**pooling), batch()
    logits = model(graphs).logits
    assert logits.shape == (2, 1, 3)
    for row, mask in enumerate(graphs["mask"]):
        edges = [edge for edge in graphs["edges"][row].tolist() if edge != [-1, -1]]
        vector = _pool(model, _encode(model, graphs["features"][row][mask], edges))
        expected = model.out.weight @ vector + model.out.bias
        torch.testing.assert_close(logits[row, 0], expected)


@pytest.mark.parametrize("pooling", POOLINGS, ids=lambda params: params["pooling"])
@torch.no_grad()
def test_the_order_of_nodes_and_the_values_of_padding_have_no_effect(pooling):
    model, graphs = compose(**pooling), batch()
    order = torch.tensor([2, 0, 3, 1])
    edges = order.argsort()[graphs["edges"].clamp(min=0)].where(graphs["edges"] >= 0, -1)
    features = graphs["features"].masked_fill(~graphs["mask"][..., None], 1e3)
    permuted = batch(features=features[:, order], edges=edges, mask=graphs["mask"][:, order])
    torch.testing.assert_close(model(permuted).logits, model(graphs).logits)


LAW_NAMES = [law.name for law in LAWS["model"] if law.name != "matches-gpu"]


@pytest.mark.parametrize("name", LAW_NAMES)
def test_pooling_by_attention_satisfies_the_laws(name):
    """The laws of other values of `pooling` run for every component."""
    (config,) = configurations(
        GraphClassifier, pooling="attention", scorer={"type": "zoo-testing:tiny"}
    )
    outcome = run_law(next(law for law in LAWS["model"] if law.name == name), config)
    assert outcome.status == ("skipped" if name == "same-generation" else "passed"), outcome


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pooling": "attention"}, "pooling 'attention' requires a scorer"),
        ({"scorer": "dot"}, "pooling 'mean' has no scorer; remove it, or set pooling: attention"),
        (ATTENTION | {"scorer": "location"}, "depends on previous queries"),
        (ATTENTION | {"scorer": "location-window"}, "the nodes of a graph have no positions"),
        ({"encoder": {"type": "gru", "hidden": 3}}, "encoder 'gru' does not accept edges"),
        ({"pooling": "first"}, "pooling"),
    ],
)
def test_invalid_specs_raise(changes, message):
    with pytest.raises(SpecError, match=message):
        compose(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": torch.zeros(2, 4).long()}, r"'target'.*\[2, 4\].*\[B\]"),
        ({"mask": torch.ones(2, 3).bool()}, r"'mask'.*\[2, 3\].*\[B, N\].*N = 4"),
        ({"edges": torch.tensor([[[0, 4]], [[0, 1]]])}, "'edges'.*contains 4"),
    ],
)
def test_invalid_batches_raise(changes, message):
    with pytest.raises(ZooError, match=message):
        compose()(batch(**changes))


def test_graphs_of_different_sizes_are_predicted_like_each_alone():
    model = compose()
    graphs = [
        {"features": torch.randn(n, 2).numpy(), "edges": torch.tensor([[0, 1]]).numpy()}
        for n in (2, 5)
    ]
    together = zoo.predict(model, graphs)
    for graph, found in zip(graphs, together, strict=True):
        assert found.probability == pytest.approx(zoo.predict(model, [graph])[0].probability)


def test_names_of_the_weights():
    names = {name.partition(".")[0] for name in compose().state_dict()}
    assert names == {"encoder", "out"}
    assert "pool.query" in compose(**ATTENTION).state_dict()
