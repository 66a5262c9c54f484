"""The blocks of models that FSDP shards."""

import pytest

import zoo
from zoo.training.sharding import find_blocks


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
