"""The blocks of models that FSDP shards."""

import pytest
import torch
from torch import nn

import zoo
from zoo.training.sharding import find_blocks, shard_model


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ("transformer-tiny", 4),
        ("gpt2-tiny", 2),
        ("bahdanau-reversal", 0),
    ],
)
def test_blocks_are_the_repeated_modules(spec, count):
    model = zoo.compose(spec)
    blocks = find_blocks(model)
    assert len(blocks) == count
    names = {id(module): name for name, module in model.named_modules()}
    assert all(names[id(block)].rpartition(".")[2].isdigit() for block in blocks)


def test_blocks_that_are_called_several_times_are_not_sharded():
    model = zoo.compose("transformer-tiny", overrides=["model.encoder.share_layers=true"])
    assert len(find_blocks(model)) == 2


def test_a_scalar_parameter_is_not_sharded():
    model = nn.Linear(2, 2)
    model.scale = nn.Parameter(torch.ones(()))
    with pytest.raises(zoo.ZooError, match=r"'scale' is a scalar.*use 'ddp'"):
        shard_model(model, torch.device("cpu"), 2)
