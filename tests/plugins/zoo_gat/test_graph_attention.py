import pytest
import torch

import zoo
from zoo import SpecError, ZooError, recording
from zoo.testing import check
from zoo_gat.graph_attention import GraphAttention
from zoo_location.location import Location
from zoo_location.location_window import LocationWindow


def _states(encoder, features, edges=None):
    return encoder(features, torch.ones(features.shape[:2], dtype=torch.bool), edges).states


def test_one_layer_has_known_values(encoder):
    layer = encoder(input_dim=1, hidden=1, self_loops=False)
    layer.load_state_dict(
        {
            "layers.0.key.weight": torch.tensor([[2.0]]),
            "layers.0.scorers.0.u.weight": torch.tensor([[0.0]]),
            "layers.0.scorers.0.v.weight": torch.tensor([[1.0]]),
            "layers.0.bias": torch.tensor([0.5]),
        }
    )
    features = torch.tensor([[[0.0], [1.0], [3.0]]])

    states = _states(layer, features, torch.tensor([[[0, 2], [1, 2], [2, 1]]]))

    # Node 2 has sources of values 0 and 2 with weights softmax(0, 2), node 1 one of value 6.
    weight = torch.tensor([0.0, 2.0]).softmax(dim=0)[1].item()
    torch.testing.assert_close(states, torch.tensor([[[0.5], [6.5], [2 * weight + 0.5]]]))


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("scorer", ["gat", "gatv2", "scaled-dot"])
def test_no_edges_is_a_complete_graph(encoder, scorer, loops):
    layers = encoder(scorer=scorer, layers=2, heads=2, self_loops=loops)
    features = torch.randn(2, 4, 5)
    all_edges = torch.cartesian_prod(torch.arange(4), torch.arange(4)).expand(2, -1, 2)
    torch.testing.assert_close(_states(layers, features), _states(layers, features, all_edges))


def test_an_edge_listed_twice_counts_twice(encoder):
    layer = encoder(self_loops=False)
    features = torch.randn(1, 3, 5)
    with recording(layer) as log:
        _states(layer, features, torch.tensor([[[0, 2], [0, 2], [1, 2]]]))
        _states(layer, features, torch.tensor([[[0, 2], [1, 2], [-1, -1]]]))
    twice, once = (weights[0, 0] for weights in log["layers.0"])
    a, b = once[0], once[1]
    torch.testing.assert_close(twice, torch.stack([a, a, b]) / (2 * a + b))


def test_a_listed_self_loop_is_not_added_again(encoder, graph):
    layer, (features, edges) = encoder(), graph
    without = edges[:, [0, 1, 2, 3, 4, 5, 7, 8]]
    torch.testing.assert_close(_states(layer, features, edges), _states(layer, features, without))


def test_recorded_weights_are_those_of_edges_then_self_loops(encoder, graph):
    layers, (features, edges) = encoder(layers=2, heads=3, output_heads=2), graph
    with recording(layers) as log:
        _states(layers, features, edges)
        _states(layers, features)
    assert [tuple(w.shape) for w in log["layers.0"]] == [(1, 3, 9 + 7), (1, 3, 7, 7)]
    assert [tuple(w.shape) for w in log["layers.1"]] == [(1, 2, 9 + 7), (1, 2, 7, 7)]
    weights = log["layers.0"][0][0]
    target = torch.cat([edges[0, :, 1], torch.arange(7)])
    sums = torch.zeros(3, 7).index_add(1, target, weights)
    torch.testing.assert_close(sums, torch.ones(3, 7))
    assert weights[:, 6].eq(0).all()  # (4, 4), which is masked and appended as a self-loop
    assert not layers.layers[0].recorders


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("project", ["shared", "kv", "qkv"])
def test_head_dropout_matches_the_formula_of_each_head(encoder, graph, project, hooked):
    params = {"head_dropout": 0.5, "project": project, "bias": True}
    layers, (features, _) = encoder(heads=3, merge="concat", attention=params), graph
    (layer,) = layers.layers
    torch.nn.init.normal_(layer.key.bias)
    if hooked:  # the projection is then called
        layer.key.register_forward_hook(lambda module, args, output: None)
    masks = []
    layer.head_dropout.register_forward_hook(
        lambda module, args, output: masks.append(2.0 * (output != 0))
    )

    output = _states(layers.train(), features).unflatten(-1, (3, 4))

    *inputs, values = masks
    assert len(inputs) == 3
    assert not torch.equal(inputs[0], inputs[1])
    for h, mask in enumerate(inputs):
        rows, x = slice(4 * h, 4 * h + 4), features * mask
        k, q, v = (
            x @ linear.weight[rows].T + linear.bias[rows]
            for linear in (layer.key, layer.query or layer.key, layer.value or layer.key)
        )
        alpha = layer.scorers[h](q, k).softmax(dim=-1)
        torch.testing.assert_close(output[:, :, h], alpha @ (v * values[..., rows]))


@pytest.mark.parametrize("scorer", ["gat", "gatv2"])
def test_head_dropout_over_edges_matches_that_without_edges(encoder, scorer):
    layers = encoder(scorer=scorer, layers=2, heads=2, attention={"head_dropout": 0.5}).train()
    features = torch.randn(2, 4, 5)
    all_edges = torch.cartesian_prod(torch.arange(4), torch.arange(4)).expand(2, -1, 2)
    outputs = []
    for edges in (None, all_edges):
        torch.manual_seed(3)
        outputs.append(_states(layers, features, edges))
    torch.testing.assert_close(*outputs)
    assert torch.equal(_states(layers.eval(), features), _states(layers, features))


@pytest.mark.parametrize("accelerated", [False, True])
def test_dropout_is_applied_to_features_and_weights(encoder, graph, accelerated):
    attentions = {"dropout": 0.5}, {"head_dropout": 0.5}
    for params in ({"dropout": 0.5}, *({"attention": each} for each in attentions)):
        layers = encoder(layers=2, **params)
        zoo.accelerate(layers, enabled=accelerated)
        assert torch.equal(_states(layers, *graph), _states(layers, *graph))
        for part in layers.modules():
            part.train(isinstance(part, torch.nn.Dropout))  # Monte Carlo dropout
        assert not torch.equal(_states(layers, *graph), _states(layers, *graph))
        layers.train()
        assert not torch.equal(_states(layers, *graph), _states(layers, *graph))


def test_identity_residual_adds_the_inputs(encoder, graph):
    features, edges = graph
    plain = encoder(hidden=5)
    added = encoder(hidden=5, attention={"residual": "identity"})
    added.load_state_dict(plain.state_dict())
    difference = _states(added, features, edges) - _states(plain, features, edges)
    torch.testing.assert_close(difference, features)


def test_identity_residual_without_equal_widths_raises(encoder):
    with pytest.raises(SpecError, match="residual: linear"):
        encoder(hidden=4, attention={"residual": "identity"})


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize(
    "attention",
    [
        {"scorer": "gat"},
        {"scorer": "additive", "project": "kv"},
        {"scorer": "gatv2", "project": "kv", "bias": True},
        {"scorer": "scaled-dot", "project": "qkv", "bias": False, "residual": "linear"},
    ],
    ids=lambda attention: attention["scorer"],
)
def test_laws_hold_with_every_projection(attention, heads):
    check(GraphAttention, attention=attention, heads=heads, layers=8, hidden=3, self_loops=False)


@pytest.mark.parametrize(
    ("scorer", "reason"),
    [
        (LocationWindow, "positions"),
        (Location, "previous queries"),
    ],
)
def test_a_scorer_that_cannot_score_edges_raises(scorer, reason):
    with pytest.raises(SpecError, match=f"scorer '{scorer.name}'.*{reason}"):
        zoo.compose("gat-tiny", overrides=[f"model.encoder.attention.scorer={scorer.name}"])


EDGES = torch.zeros(1, 2, 2, dtype=torch.long)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (EDGES.float(), "edges.*torch.float32"),
        (EDGES.bool(), "edges.*torch.bool"),
        (EDGES[0], r"edges.*\[1, E, 2\].*\[2, 2\]"),
        (torch.zeros(1, 2, 9).long(), r"edges.*\[1, E, 2\].*\[1, 2, 9\]"),
        (EDGES.expand(3, 2, 2), r"edges.*\[1, E, 2\].*\[3, 2, 2\]"),
        (torch.tensor([[[0, 1], [2, 7]]]), r"edge 1 of graph 0 is \[2, 7\].*0 to 6.*\[-1, -1\]"),
        (torch.tensor([[[-2, 1]]]), r"edge 0 of graph 0 is \[-2, 1\]"),
        (torch.tensor([[[-1, 1]]]), r"edge 0 of graph 0 is \[-1, 1\]"),
    ],
)
def test_invalid_edges_raise(encoder, graph, edges, message):
    with pytest.raises(ZooError, match=message):
        _states(encoder(), graph[0], edges)


def test_an_unchecked_invalid_index_triggers_torch_assertion(encoder):
    """Index 3 of the first graph, which has three nodes, is not node 0 of the second graph."""
    torch.compiler.reset()
    compiled = torch.compile(encoder(), backend="eager", fullgraph=True)
    with pytest.raises((IndexError, RuntimeError), match=r"out of (range|bounds)"):
        _states(compiled, torch.randn(2, 3, 5), torch.tensor([[[3, 0]], [[0, 1]]]))


def test_edges_of_masked_nodes_are_ignored(encoder, graph):
    layer, (features, edges) = encoder(), graph
    mask = torch.ones(1, 7, dtype=torch.bool)
    mask[0, 5:] = False
    expected = layer(features[:, :5], mask[:, :5], edges[:, [0, 1, 2, 3, 4, 6, 7, 8]])
    actual = layer(features.masked_fill(~mask[..., None], float("nan")), mask, edges)
    torch.testing.assert_close(actual.states[:, :5], expected.states)
    torch.testing.assert_close(actual.summary, expected.summary)


def test_empty_graphs(encoder):
    layers = encoder(layers=2, heads=2, self_loops=False)
    torch.nn.init.ones_(layers.layers[-1].bias)
    no_edges = torch.empty(1, 0, 2, dtype=torch.long)
    padding = torch.full((1, 3, 2), -1)
    for edges in (no_edges, padding):
        assert _states(layers, torch.randn(1, 3, 5), edges).eq(1).all()
        assert _states(layers, torch.randn(1, 0, 5), edges).shape == (1, 0, 4)
    assert _states(layers, torch.randn(0, 3, 5), no_edges[:0]).shape == (0, 3, 4)


def test_gradients_flow_through_edges_and_are_finite(encoder, graph):
    layers, (features, edges) = encoder(layers=2, heads=2, self_loops=False), graph
    features = features.double().requires_grad_()
    layers.double()
    assert torch.autograd.gradcheck(lambda x: _states(layers, x, edges), features)


def test_large_scores_do_not_overflow(encoder, graph):
    layer, (features, edges) = encoder(), graph
    states = _states(layer, features * 1e6, edges)
    assert states.isfinite().all()


def test_state_dict_shapes(encoder):
    layers = encoder(layers=2, heads=2, output=3, output_heads=1)
    assert {k: tuple(v.shape) for k, v in layers.state_dict().items()} == {
        "layers.0.key.weight": (8, 5),
        "layers.0.scorers.0.u.weight": (1, 4),
        "layers.0.scorers.0.v.weight": (1, 4),
        "layers.0.scorers.1.u.weight": (1, 4),
        "layers.0.scorers.1.v.weight": (1, 4),
        "layers.0.bias": (8,),
        "layers.1.key.weight": (3, 8),
        "layers.1.scorers.0.u.weight": (1, 3),
        "layers.1.scorers.0.v.weight": (1, 3),
        "layers.1.bias": (3,),
    }
    projected = encoder(scorer="scaled-dot", attention={"project": "qkv", "residual": "linear"})
    names = ["bias", "query.weight", "key.weight", "value.weight", "skip.weight"]
    assert list(projected.state_dict()) == [f"layers.0.{name}" for name in names]


def test_edges_do_not_allocate_a_dense_matrix(encoder):
    """A dense matrix of 100,000 nodes would need 40 GB."""
    layer = encoder(input_dim=1, hidden=1)
    edges = torch.randint(0, 100_000, (1, 1000, 2))
    with torch.no_grad():
        assert _states(layer, torch.randn(1, 100_000, 1), edges).isfinite().all()


def test_repr_shows_heads_and_widths(encoder):
    layers = encoder(layers=2, heads=2, output=3)
    assert layers.extra_repr() == (
        "input_dim=5, hidden=4, heads=2, output=3, output_heads=2, activation='elu', "
        "self_loops=True"
    )
    assert layers.layers[0].extra_repr() == (
        "input_dim=5, head_dim=4, heads=2, merge='concat', project='shared', residual='none'"
    )
