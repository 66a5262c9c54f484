"""GAT attention in Triton kernels, compared with the reference path."""

import copy
import pickle

import pytest
import torch

from zoo.attention import recording
from zoo.plugin import Blueprint
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.edge_order import OrderCache
from zoo_gat.edges import EdgeList
from zoo_gat.gat import Gat
from zoo_gat.gatv2 import GatV2
from zoo_gat.graph_attention import GraphAttention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EDGES = {
    "one-node": (1, [[[0, 0]]]),
    "no-edge": (3, [[[-1, -1]]]),
    "isolated-and-duplicate": (5, [[[0, 1], [0, 1], [2, 1], [3, 3], [4, 3]]]),
    "padded-batch": (
        4,
        [[[0, 1], [1, 2], [3, 0], [2, 1]], [[2, 0], [1, 0], [-1, -1], [-1, -1]]],
    ),
    "many-edges": (7, [[[i, j] for i in range(7) for j in range(6)]]),
}


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")


def make_layer(scorer=Gat, heads=3, head_dim=5, **params):
    torch.manual_seed(0)
    return EdgeAttention(
        input_dim=4,
        head_dim=head_dim,
        heads=heads,
        merge="concat",
        scorer=Blueprint.of(scorer),
        **params,
    ).to(DEVICE)


def make_inputs(case, dtype=torch.float32):
    nodes, edges = EDGES[case]
    edges = torch.tensor(edges, device=DEVICE)
    torch.manual_seed(1)
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


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("case", EDGES)
def test_kernels_match_the_reference_in_float32(case, self_loops):
    layer = make_layer(project="qkv", bias=True)
    inputs, mask, edges = make_inputs(case)
    edge_list = EdgeList.from_batch(edges, mask, self_loops=self_loops)
    assert layer._why_not_fused(inputs) is None
    fused = outputs_and_gradients(layer, inputs, mask, edge_list)
    with recording(layer):
        expected = outputs_and_gradients(layer, inputs, mask, edge_list)
    for result, reference in zip(fused, expected, strict=True):
        torch.testing.assert_close(result, reference, rtol=1e-4, atol=1e-5)


def test_kernels_match_the_reference_in_bfloat16():
    layer = make_layer(heads=1, head_dim=1)
    inputs, mask, edges = make_inputs("padded-batch")
    edge_list = EdgeList.from_batch(edges, mask, self_loops=True)
    with recording(layer):
        expected = outputs_and_gradients(layer, inputs, mask, edge_list)
    half = layer.bfloat16()
    inputs = inputs.detach().bfloat16().requires_grad_()
    fused = outputs_and_gradients(half, inputs, mask, edge_list)
    for result, reference in zip(fused, expected, strict=True):
        assert (result - reference).norm() <= 0.03 * reference.norm() + 1e-3


def test_reference_path_is_used_where_the_kernel_does_not_apply():
    values = torch.zeros(2, 3, 5, device=DEVICE)
    assert "gatv2" in make_layer(GatV2)._why_not_fused(values)
    assert "dropout" in make_layer(dropout=0.5)._why_not_fused(values)
    assert make_layer(dropout=0.5).eval()._why_not_fused(values) is None
    assert "float64" in make_layer()._why_not_fused(values.double())
    hooked = make_layer()
    hooked.scorers[0].register_forward_hook(lambda *_: None)
    assert "hooks" in hooked._why_not_fused(values)


def test_orders_are_kept_for_the_same_edges_only():
    cache, mask = OrderCache(), torch.ones(1, 3, dtype=torch.bool)
    edges = torch.tensor([[[0, 1], [2, 0]]])

    def orders(edges, self_loops=True):
        built = EdgeList.from_batch(edges, mask, self_loops=self_loops, cache=cache)
        return built.by_target.order

    first = orders(edges)
    assert orders(edges) is first
    assert orders(edges.clone()) is not first
    changed = orders(edges)
    edges[0, 0, 1] = 2
    assert orders(edges) is not changed
    assert orders(edges, self_loops=False) is not orders(edges)


def test_an_encoder_with_a_used_cache_can_be_copied_and_pickled():
    encoder = GraphAttention(
        input_dim=4,
        layers=1,
        hidden=3,
        attention=Blueprint.of(EdgeAttention, scorer=Blueprint.of(Gat)),
    ).to(DEVICE)
    inputs, mask, edges = make_inputs("padded-batch")
    expected = encoder(inputs, mask, edges).states
    for copied in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        torch.testing.assert_close(copied(inputs, mask, edges).states, expected)
