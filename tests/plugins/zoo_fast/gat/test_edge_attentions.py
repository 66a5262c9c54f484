"""Attention over edges in Triton kernels, compared with the reference path."""

import copy
import pickle

import pytest
import torch
from torch import nn

import zoo
from zoo.acceleration.conditions import why_not
from zoo.attention import recording
from zoo.plugin import Blueprint
from zoo_fast.gat import edge_order
from zoo_fast.gat.edge_attentions import EdgeAttentionFused
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.edges import EdgeList
from zoo_gat.gat import Gat
from zoo_gat.gatv2 import GatV2
from zoo_gat.graph_attention import GraphAttention
from zoo_luong.dot import Dot
from zoo_transformer.scaled_dot import ScaledDot

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EDGES = {
    "one-node": (1, [[[0, 0]]]),
    "no-edge": (3, [[[-1, -1]]]),
    "isolated-and-duplicate": (5, [[[0, 1], [0, 1], [2, 1], [3, 3], [4, 3]]]),
    "padded-batch": (
        4,
        [[[0, 1], [1, 2], [3, 0], [2, 1]], [[2, 0], [1, 0], [-1, -1], [-1, -1]]],
    ),
    "hubs": (7, [[[i, j] for i in range(7) for j in (0, 1, 1, 3)]]),
}
LAYERS = {
    "gat": (Gat, {}),
    "gat-qkv": (Gat, {"project": "qkv", "bias": True}),
    "gat-bias": (Gat, {"bias": True}),
    "gatv2": (GatV2, {"project": "kv", "bias": True}),
    "gatv2-qkv": (GatV2, {"project": "qkv"}),
    "scaled-dot": (ScaledDot, {"project": "qkv", "bias": True}),
    "dot": (Dot, {"project": "shared"}),
}


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    monkeypatch.setattr(edge_order, "CHUNK", 4)  # hubs have several chunks


def make_layer(name="gat", heads=3, head_dim=5, **params):
    scorer, fixed = LAYERS[name]
    torch.manual_seed(0)
    layer = EdgeAttention(
        input_dim=4,
        head_dim=head_dim,
        heads=heads,
        merge="concat",
        scorer=Blueprint.of(scorer),
        **fixed,
        **params,
    )
    return zoo.accelerate(layer.to(DEVICE))


def reason_for_reference(layer, inputs, edge_list=None):
    """Return why the reference path is used, or None."""
    reason = why_not(EdgeAttentionFused(), layer, inputs.device)
    if reason is not None or edge_list is None:
        return reason
    mask = edge_list.is_valid_node.view(inputs.shape[:2])
    return getattr(EdgeAttentionFused().forward(layer, inputs, mask, edge_list), "reason", None)


def make_inputs(case, dtype=torch.float32):
    nodes, edges = EDGES[case]
    edges = torch.tensor(edges, device=DEVICE)
    inputs = torch.randn(len(edges), nodes, 4, device=DEVICE).to(dtype).requires_grad_()
    mask = torch.ones(len(edges), nodes, dtype=torch.bool, device=DEVICE)
    mask[-1, 3:] = False
    return inputs, mask, edges


def outputs_and_gradients(layer, inputs, mask, edge_list):
    output = layer(inputs, mask, edge_list)
    weights = torch.arange(1, output.numel() + 1, device=DEVICE).view(output.shape).cos()
    tensors = [inputs, *layer.parameters()]
    gradients = torch.autograd.grad((output * weights).sum(), tensors)
    return output, *gradients


def assert_matches_the_reference(layer, inputs, mask, edge_list):
    assert reason_for_reference(layer, inputs, edge_list) is None
    fused = outputs_and_gradients(layer, inputs, mask, edge_list)
    with recording(layer):
        expected = outputs_and_gradients(layer, inputs, mask, edge_list)
    for result, reference in zip(fused, expected, strict=True):
        torch.testing.assert_close(result, reference, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("case", EDGES)
def test_gat_matches_the_reference(case, self_loops):
    inputs, mask, edges = make_inputs(case)
    edge_list = EdgeList.from_batch(edges, mask, self_loops=self_loops)
    assert_matches_the_reference(make_layer(), inputs, mask, edge_list)


@pytest.mark.parametrize("case", ["padded-batch", "hubs"])
@pytest.mark.parametrize("name", list(LAYERS)[1:])
def test_scorers_match_the_reference(name, case):
    inputs, mask, edges = make_inputs(case)
    edge_list = EdgeList.from_batch(edges, mask, self_loops=case == "hubs")
    assert_matches_the_reference(make_layer(name), inputs, mask, edge_list)


@pytest.mark.parametrize("name", ["gat", "gatv2", "scaled-dot"])
def test_kernels_match_the_reference_in_bfloat16(name):
    layer = make_layer(name, heads=1, head_dim=3)
    inputs, mask, edges = make_inputs("hubs")
    edge_list = EdgeList.from_batch(edges, mask, self_loops=True)
    with recording(layer):
        expected = outputs_and_gradients(layer, inputs, mask, edge_list)
    half = layer.bfloat16()
    inputs = inputs.detach().bfloat16().requires_grad_()
    fused = outputs_and_gradients(half, inputs, mask, edge_list)
    for result, reference in zip(fused, expected, strict=True):
        assert (result - reference).norm() <= 0.03 * reference.norm() + 1e-2


@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul:RuntimeWarning")
@pytest.mark.parametrize("name", ["gat", "gatv2", "scaled-dot"])
def test_masked_nodes_that_are_not_finite_and_not_contiguous_inputs(name):
    layer = make_layer(name)
    _, mask, edges = make_inputs("isolated-and-duplicate")
    wide = torch.randn(1, 5, 8, device=DEVICE)
    wide[0, 3:] = float("inf")  # masked nodes
    inputs = wide[..., ::2].requires_grad_()
    edge_list = EdgeList.from_batch(edges, mask, self_loops=True)

    def results():
        output = layer(inputs, mask, edge_list)
        g = output.detach().cos()
        g[~mask] = float("nan")
        return output, torch.autograd.grad(output, inputs, g)[0][mask]

    fused = results()
    with recording(layer):
        expected = results()
    for result, reference in zip(fused, expected, strict=True):
        torch.testing.assert_close(result, reference)
        assert result.isfinite().all()


def test_groups_of_heads_and_a_repeated_backward_pass_match_the_reference(monkeypatch):
    from zoo_fast.gat.kernels import fused_layer

    monkeypatch.setattr(fused_layer, "LARGE", 1)
    inputs, mask, edges = make_inputs("isolated-and-duplicate")
    edge_list = EdgeList.from_batch(edges, mask, self_loops=True)
    layer = make_layer("gat-bias", heads=4)
    output, tensors = layer(inputs, mask, edge_list), [inputs, *layer.parameters()]
    for _ in range(2):
        gradients = torch.autograd.grad(output.cos().sum(), tensors, retain_graph=True)
    with recording(layer):
        expected = torch.autograd.grad(layer(inputs, mask, edge_list).cos().sum(), tensors)
    for result, reference in zip(gradients, expected, strict=True):
        torch.testing.assert_close(result, reference, rtol=1e-4, atol=1e-5)


def test_large_scores_do_not_overflow():
    layer = make_layer()
    inputs, mask, edges = make_inputs("hubs")
    edge_list = EdgeList.from_batch(edges, mask, self_loops=True)
    inputs = (inputs * 1e3).detach().requires_grad_()
    fused = layer(inputs, mask, edge_list)
    with recording(layer):
        torch.testing.assert_close(fused, layer(inputs, mask, edge_list), rtol=1e-3, atol=1e-3)


def make_dense_graph(nodes):
    edges = torch.cartesian_prod(torch.arange(nodes), torch.arange(nodes))[None].to(DEVICE)
    mask = torch.ones(1, nodes, dtype=torch.bool, device=DEVICE)
    return EdgeList.from_batch(edges, mask, self_loops=False)


def make_factors(edge_list, heads, dropout_p):
    """Return the dropout factors of the next call of a layer."""
    from zoo_fast.gat.kernels.arguments import EdgeScore
    from zoo_fast.gat.kernels.fused_edges import draw_seed
    from zoo_fast.gat.kernels.launch import dropout_factors

    weights = torch.empty(len(edge_list.index.target), heads, device=DEVICE)
    return dropout_factors(weights, EdgeScore(0, 0.0, dropout_p, draw_seed(weights, dropout_p)))


class FixedDropout(nn.Module):
    """Multiplies the weights by given factors."""

    def __init__(self, factors):
        super().__init__()
        self.factors = factors

    def forward(self, weights):
        return weights * self.factors


@pytest.mark.parametrize("name", ["gat", "gatv2-qkv", "scaled-dot"])
def test_dropout_is_the_same_in_the_backward_pass(name):
    nodes = 4
    layer = make_layer(name, dropout=0.5)
    edge_list = make_dense_graph(nodes)
    inputs = torch.randn(1, nodes, 4, device=DEVICE, requires_grad=True)
    mask = torch.ones(1, nodes, dtype=torch.bool, device=DEVICE)
    torch.manual_seed(3)
    fused = outputs_and_gradients(layer, inputs, mask, edge_list)
    torch.manual_seed(3)
    factors = make_factors(edge_list, heads=3, dropout_p=0.5)
    assert set(factors.unique().tolist()) == {0.0, 2.0}
    layer.dropout = FixedDropout(factors)
    with recording(layer):
        expected = outputs_and_gradients(layer, inputs, mask, edge_list)
    for result, reference in zip(fused, expected, strict=True):
        torch.testing.assert_close(result, reference, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gat", "gatv2", "dot"])
def test_second_derivatives_match_the_reference(name):
    layer = make_layer(name, heads=2, head_dim=2)
    inputs, mask, edges = make_inputs("isolated-and-duplicate")
    edge_list = EdgeList.from_batch(edges, mask, self_loops=True)

    def second():
        output = layer(inputs, mask, edge_list)
        (grad,) = torch.autograd.grad(output.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(grad.square().sum(), inputs)[0]

    fused = second()
    with recording(layer):
        torch.testing.assert_close(fused, second(), rtol=1e-3, atol=1e-4)


def test_dropout_factors_have_the_probability():
    factors = make_factors(make_dense_graph(40), heads=2, dropout_p=0.25)
    assert (factors == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert factors.mean().item() == pytest.approx(1.0, abs=0.04)
    both = (factors[:, 0] == 0) & (factors[:, 1] == 0)
    assert both.float().mean().item() == pytest.approx(0.0625, abs=0.03)


def test_reference_path_is_used_where_the_kernels_do_not_apply():
    inputs = torch.zeros(1, 3, 4, device=DEVICE)
    edge_list = make_dense_graph(3)
    assert reason_for_reference(make_layer("gatv2", dropout=0.5), inputs, edge_list) is None
    double = make_layer("gatv2").double()
    assert "float64" in reason_for_reference(double, inputs.double(), edge_list)
    empty = make_dense_graph(0)
    assert "no values" in reason_for_reference(make_layer(), inputs[:, :0], empty)
    assert "1024" in reason_for_reference(make_layer(heads=1, head_dim=1025), inputs)
    hooked = make_layer()
    hooked.scorers[0].register_forward_hook(lambda *_: None)
    assert "hooks" in reason_for_reference(hooked, inputs)
    with recording(layer := make_layer()):
        assert "recorded" in reason_for_reference(layer, inputs)


@pytest.mark.parametrize("scorer", [Gat, GatV2, ScaledDot])
def test_encoders_are_equivariant_and_ignore_padding(scorer):
    """The laws of encoders, which run in float64, in float32 and so in the kernels."""
    torch.manual_seed(0)
    blueprint = Blueprint.of(EdgeAttention, scorer=Blueprint.of(scorer))
    encoder = Blueprint.of(GraphAttention, layers=2, hidden=3, attention=blueprint).build(
        input_dim=4
    )
    encoder = zoo.accelerate(encoder.to(DEVICE))
    inputs, mask, edges = make_inputs("padded-batch")
    assert reason_for_reference(encoder.layers[0], inputs) is None
    states = encoder(inputs, mask, edges).states
    order = torch.tensor([2, 0, 3, 1], device=DEVICE)
    renamed = torch.where(edges < 0, edges, order.argsort()[edges.clamp(min=0)])
    permuted = encoder(inputs[:, order], mask[:, order], renamed).states
    torch.testing.assert_close(permuted, states[:, order], rtol=1e-4, atol=1e-5)
    nodes, padding = torch.randn(2, 1, 4, device=DEVICE), torch.full((2, 2, 2), -1, device=DEVICE)
    padded = encoder(
        torch.cat([inputs, nodes], dim=1),
        torch.cat([mask, mask.new_zeros(2, 1)], dim=1),
        torch.cat([edges, padding], dim=1),
    ).states
    torch.testing.assert_close(padded[:, :4], states, rtol=1e-4, atol=1e-5)


def test_an_encoder_with_a_used_cache_can_be_copied_and_pickled():
    blueprint = Blueprint.of(EdgeAttention, scorer=Blueprint.of(Gat))
    encoder = Blueprint.of(GraphAttention, layers=1, hidden=3, attention=blueprint).build(
        input_dim=4
    )
    encoder = zoo.accelerate(encoder.to(DEVICE))
    inputs, mask, edges = make_inputs("padded-batch")
    expected = encoder(inputs, mask, edges).states
    for copied in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        torch.testing.assert_close(copied(inputs, mask, edges).states, expected)
