"""Parity with GATConv, GATv2Conv and TransformerConv of PyTorch Geometric."""

import pytest
import torch

GEOMETRIC = pytest.importorskip(
    "torch_geometric.nn", reason="torch-geometric is not installed (the 'test' extra has it)"
)

EMPTY = torch.empty(1, 0, 2, dtype=torch.long)


def _forward(encoder, features, edges):
    mask = torch.ones(features.shape[:2], dtype=torch.bool)
    return encoder(features, mask, edges).states


def _assert_parity(encoder, reference, features, edges):
    for edge_list in (edges, EMPTY):
        expected = reference(features[0], edge_list[0].T)
        actual = _forward(encoder, features, edge_list)[0]
        torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)
    empty = _forward(encoder, features[:, :0], EMPTY)
    assert empty.shape == (1, 0, reference(features[0, :0], EMPTY[0].T).shape[1])


def _randomize_parameters(reference):
    """Replace the initial values, among which biases are zero."""
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(3))
    return reference.eval()


CHOICES = [
    pytest.param(heads, merge, loops, residual, id=f"{heads}-{merge}-{loops}-{residual}")
    for heads in (1, 3)
    for merge in ("concat", "mean")
    for loops in (True, False)
    for residual in ("none", "linear")
]


@pytest.mark.parametrize(("heads", "merge", "loops", "residual"), CHOICES)
def test_gat_matches_gat_conv(encoder, graph, heads, merge, loops, residual):
    reference = _randomize_parameters(
        GEOMETRIC.GATConv(
            5, 4, heads, merge == "concat", add_self_loops=loops, residual=residual == "linear"
        )
    )
    ours = encoder(heads=heads, merge=merge, self_loops=loops, attention={"residual": residual})
    layer = ours.layers[0]
    with torch.no_grad():
        layer.key.weight.copy_(reference.lin.weight)
        for head, scorer in enumerate(layer.scorers):
            scorer.u.weight.copy_(reference.att_dst[:, head])
            scorer.v.weight.copy_(reference.att_src[:, head])
        layer.bias.copy_(reference.bias)
        if residual == "linear":
            layer.skip.weight.copy_(reference.res.weight)
    _assert_parity(ours, reference, *graph)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("heads", "merge", "loops", "residual"), CHOICES)
def test_gatv2_matches_gatv2_conv(encoder, graph, heads, merge, loops, residual, shared):
    reference = _randomize_parameters(
        GEOMETRIC.GATv2Conv(
            5,
            4,
            heads,
            merge == "concat",
            add_self_loops=loops,
            residual=residual == "linear",
            share_weights=shared,
        )
    )
    params = {"project": "shared" if shared else "kv", "bias": True, "residual": residual}
    ours = encoder(scorer="gatv2", heads=heads, merge=merge, self_loops=loops, attention=params)
    layer = ours.layers[0]
    layer.key.load_state_dict(reference.lin_l.state_dict())
    with torch.no_grad():
        if not shared:
            layer.query.load_state_dict(reference.lin_r.state_dict())
        for head, scorer in enumerate(layer.scorers):
            scorer.a.copy_(reference.att[0, head])
        layer.bias.copy_(reference.bias)
        if residual == "linear":
            layer.skip.weight.copy_(reference.res.weight)
    _assert_parity(ours, reference, *graph)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("merge", ["concat", "mean"])
def test_scaled_dot_matches_transformer_conv(encoder, graph, heads, merge):
    reference = _randomize_parameters(GEOMETRIC.TransformerConv(5, 4, heads, merge == "concat"))
    params = {"project": "qkv", "bias": True, "residual": "linear"}
    ours = encoder(
        scorer="scaled-dot", heads=heads, merge=merge, self_loops=False, attention=params
    )
    layer = ours.layers[0]
    layer.query.load_state_dict(reference.lin_query.state_dict())
    layer.key.load_state_dict(reference.lin_key.state_dict())
    layer.value.load_state_dict(reference.lin_value.state_dict())
    with torch.no_grad():
        layer.skip.weight.copy_(reference.lin_skip.weight)
        layer.bias.copy_(reference.lin_skip.bias)
    _assert_parity(ours, reference, *graph)


def test_gradients_match_gat_conv(encoder, graph):
    features, edges = graph[0].double(), graph[1]
    reference = _randomize_parameters(GEOMETRIC.GATConv(5, 4, 2)).double()
    ours = encoder(heads=2, merge="concat").double()
    layer = ours.layers[0]
    with torch.no_grad():
        layer.key.weight.copy_(reference.lin.weight)
        for head, scorer in enumerate(layer.scorers):
            scorer.u.weight.copy_(reference.att_dst[:, head])
            scorer.v.weight.copy_(reference.att_src[:, head])
    _forward(ours, features, edges)[0].square().sum().backward()
    with torch.no_grad():
        reference.bias.zero_()
    reference(features[0], edges[0].T).square().sum().backward()
    torch.testing.assert_close(layer.key.weight.grad, reference.lin.weight.grad)
    for head, scorer in enumerate(layer.scorers):
        torch.testing.assert_close(scorer.u.weight.grad, reference.att_dst.grad[:, head])
        torch.testing.assert_close(scorer.v.weight.grad, reference.att_src.grad[:, head])
