"""Projections of the inputs of each head, compared with the reference path."""

import pytest
import torch

import zoo
from zoo.acceleration.conditions import why_not
from zoo.plugin import Blueprint
from zoo_fast.gat.projections import HeadProjections
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.gat import Gat


@pytest.mark.parametrize("project", ["shared", "kv", "qkv"])
@pytest.mark.parametrize("bias", [True, False])
def test_heads_with_their_own_dropout_equal_the_reference(project, bias):
    torch.manual_seed(0)
    layer = EdgeAttention(
        input_dim=5,
        head_dim=3,
        heads=2,
        merge="concat",
        scorer=Blueprint.of(Gat),
        project=project,
        bias=bias,
        head_dropout=0.5,
    )
    inputs, results = torch.randn(2, 4, 5), []
    for accelerated in (False, True):
        zoo.accelerate(layer, enabled=accelerated)
        torch.manual_seed(1)
        results.append(layer.project_inputs(inputs))
    torch.testing.assert_close(results[1], results[0])
    assert why_not(HeadProjections(), layer, inputs.device) is None
    assert why_not(HeadProjections(), layer.eval(), inputs.device) is not None
