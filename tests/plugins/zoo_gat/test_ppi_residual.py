"""The residual of gat-ppi: the authors' code, per head, and PyTorch Geometric's PPI example."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import zoo

SMALL = ["model={features: 5, classes: 3, encoder: {hidden: 4, heads: 2, output: 3}}"]


@pytest.fixture
def model():
    return zoo.compose("gat-ppi", overrides=SMALL).double().eval()


def randomize(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(3))


def head_output(x, adjacency, W, scorer, residual=None):
    """Compute one head as the authors do, with a dense adjacency matrix [target, source]."""
    projected = x @ W.T
    scores = scorer.u(projected) + scorer.v(projected).T
    weights = F.leaky_relu(scores, 0.2).masked_fill(~adjacency, -1e9).softmax(dim=-1)
    output = weights @ projected
    return output if residual is None else output + x @ residual.T


@torch.no_grad()
def test_each_head_of_the_second_layer_has_a_linear_residual_as_in_the_authors_code(model, graph):
    randomize(model)
    features, edges = graph
    adjacency = torch.eye(7, dtype=torch.bool)
    for source, target in set(map(tuple, edges[0].tolist())):
        adjacency[target, source] = True
    unique = torch.tensor([sorted(set(map(tuple, edges[0].tolist())))])

    x = features[0].double()
    layers = model.encoder.layers
    for index, layer in enumerate(layers):
        heads = []
        for head, W in enumerate(layer.key.weight.unflatten(0, (layer.heads, -1))):
            residual = None
            if index == 1:  # from all heads of the first layer to the width of this head
                residual = layer.skip.weight[4 * head : 4 * (head + 1)]
                assert residual.shape == (4, 8)
            heads.append(head_output(x, adjacency, W, layer.scorers[head], residual))
        if index < 2:
            x = F.elu(torch.cat(heads, dim=1) + layer.bias)
        else:
            x = torch.stack(heads).mean(dim=0) + layer.bias

    batch = {"features": features.double(), "edges": unique, "target": torch.zeros(1, 7, 3)}
    torch.testing.assert_close(model(batch).logits[0], x)
    assert [layer.skip is not None for layer in layers] == [False, True, False]


@torch.no_grad()
def test_a_residual_at_all_layers_equals_the_example_of_pytorch_geometric(graph):
    geometric = pytest.importorskip("torch_geometric.nn", reason="torch-geometric is not installed")
    overrides = [*SMALL, "model.encoder={residual_layers: all, attention: {scorer: {bias: false}}}"]
    model = zoo.compose("gat-ppi", overrides=overrides).double().eval()
    features, edges = graph
    convs = nn.ModuleList(
        [
            geometric.GATConv(5, 4, heads=2),
            geometric.GATConv(8, 4, heads=2),
            geometric.GATConv(8, 3, heads=6, concat=False),
        ]
    ).double()
    linears = nn.ModuleList([nn.Linear(5, 8), nn.Linear(8, 8), nn.Linear(8, 3)]).double()
    randomize(nn.ModuleList([convs, linears]))
    for layer, conv, linear in zip(model.encoder.layers, convs, linears, strict=True):
        layer.key.weight.copy_(conv.lin.weight)
        for head, scorer in enumerate(layer.scorers):
            scorer.u.weight.copy_(conv.att_dst[:, head])
            scorer.v.weight.copy_(conv.att_src[:, head])
        layer.skip.weight.copy_(linear.weight)
        layer.bias.copy_(conv.bias + linear.bias)

    x, index = features[0].double(), edges[0].T
    for conv, linear in zip(convs[:2], linears[:2], strict=True):
        x = F.elu(conv(x, index) + linear(x))
    expected = convs[2](x, index) + linears[2](x)

    batch = {"features": features.double(), "edges": edges, "target": torch.zeros(1, 7, 3)}
    torch.testing.assert_close(model(batch).logits[0], expected)


def test_the_spec_has_the_weights_of_the_authors_code_without_the_second_bias():
    layers = [(50, 256, 4), (1024, 256, 4), (1024, 121, 6)]
    heads = sum(n * (width * out + 2 * (out + 1)) for width, out, n in layers)  # W, u, v and biases
    assert zoo.check("gat-ppi").parameters == heads + 1024 + 1024 + 121 + 4 * 256 * 1024


def test_inner_residuals_need_three_layers():
    with pytest.raises(zoo.SpecError, match=r"'inner' requires at least 3 layers.* are 2"):
        zoo.check("gat-ppi", overrides=["model.encoder.layers=2"])
