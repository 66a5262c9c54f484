"""GAT attention over sorted edges on the CPU, compared with the reference path."""

import copy

import pytest
import torch

import zoo
from zoo.attention import recording
from zoo.plugin import Blueprint
from zoo_fast.gat.edge_attentions import EdgeAttentionFused
from zoo_fast.gat.segment_gat import segment_gat
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.edges import EdgeList
from zoo_gat.gat import Gat


def make_graph(nodes=9, edges=40):
    pairs = torch.randint(nodes, (2, edges, 2))
    pairs[0, ::3, 1] = 2  # a hub
    pairs[1, -2:] = -1
    mask = torch.ones(2, nodes, dtype=torch.bool)
    mask[1, 5:] = False
    return pairs, mask


def make_layer(**params):
    layer = EdgeAttention(
        input_dim=4, head_dim=3, heads=2, merge="concat", scorer=Blueprint.of(Gat), **params
    )
    return zoo.accelerate(layer.double())


def outputs_and_gradients(layer, inputs, mask, edge_list):
    output = layer(inputs, mask, edge_list)
    tensors = [inputs, *layer.parameters()]
    return output, *torch.autograd.grad(output.cos().sum(), tensors)


@pytest.mark.parametrize("scale", [1.0, 300.0], ids=["close", "far"])
@pytest.mark.parametrize("project", ["shared", "qkv"])
def test_segments_match_the_reference(project, scale):
    layer = make_layer(project=project, bias=True)
    edges, mask = make_graph()
    inputs = (torch.randn(2, 9, 4, dtype=torch.double) * scale).requires_grad_()
    edge_list = EdgeList.from_batch(edges, mask, self_loops=project == "qkv")
    assert EdgeAttentionFused().why_not(layer, inputs.device) is None
    found = outputs_and_gradients(layer, inputs, mask, edge_list)
    with recording(layer):
        expected = outputs_and_gradients(layer, inputs, mask, edge_list)
    for result, reference in zip(found, expected, strict=True):
        torch.testing.assert_close(result, reference)


def test_masked_nodes_that_are_not_finite_are_ignored():
    layer = make_layer()
    edges, mask = make_graph()
    inputs = torch.randn(2, 9, 4, dtype=torch.double)
    edge_list = EdgeList.from_batch(edges, mask, self_loops=True)
    expected = layer(inputs, mask, edge_list)
    inputs[1, 5:] = float("inf")
    torch.testing.assert_close(layer(inputs, mask, edge_list), expected)


@pytest.mark.parametrize("dropout_p", [0.0, 0.4])
def test_first_and_second_derivatives(dropout_p):
    edges, mask = make_graph(nodes=3, edges=6)
    mask[1, 2:] = False
    edge_list = EdgeList.from_batch(edges, mask, self_loops=True)
    terms, v = torch.randn(6, 4).double(), torch.randn(6, 2, 2).double()

    def attend(terms, v):
        torch.manual_seed(0)
        return segment_gat(terms, v, edge_list, slope=0.2, dropout_p=dropout_p)

    inputs = terms.requires_grad_(), v.requires_grad_()
    assert torch.autograd.gradcheck(attend, inputs)
    assert torch.autograd.gradgradcheck(attend, inputs)


def test_dropout_of_weights():
    layer = make_layer(dropout=0.5)
    edges, mask = make_graph()
    edge_list = EdgeList.from_batch(edges, mask, self_loops=True)
    inputs = torch.randn(2, 9, 4, dtype=torch.double)
    expected = copy.deepcopy(layer).eval()(inputs, mask, edge_list)
    mean = torch.stack([layer(inputs, mask, edge_list) for _ in range(400)]).mean(dim=0)
    torch.testing.assert_close(mean, expected, atol=0.2, rtol=0)
    assert not torch.equal(layer(inputs, mask, edge_list), layer(inputs, mask, edge_list))
