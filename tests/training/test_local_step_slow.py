"""Training with train.compile: the results of training without it, with few compilations."""

import pytest
import torch
from torch._dynamo.utils import counters
from training_kit import make_spec, read_log

import zoo


@pytest.mark.slow
def test_compiled_training_has_the_losses_of_eager_training(files, tmp_path):
    """Batches have several lengths: the second compilation is for all of them."""
    losses = []
    for compiled in (False, True):
        torch.compiler.reset()
        counters.clear()
        folder = tmp_path / str(compiled)
        spec = make_spec(files, steps=6, compile=compiled, log={"every": 1})
        zoo.train(spec, output=folder, device="cpu")
        losses.append([entry["loss"] for entry in read_log(folder) if "loss" in entry])
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert 1 <= counters["stats"]["unique_graphs"] <= 3
