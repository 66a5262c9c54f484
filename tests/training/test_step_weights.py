"""Gradients of micro-batches."""

import pytest
from training_kit import make_spec, read_log

import zoo
from zoo.training.setup import check_split


@pytest.mark.parametrize("accumulate", [3, 9])  # 9: more micro-batches than examples
def test_accumulation_follows_the_losses_of_whole_batches(files, tmp_path, accumulate):
    losses = {}
    for count in (1, accumulate):
        settings = {"steps": 10, "log": {"every": 1}, "clip": 1.0, "validation": None}
        spec = make_spec(files, **settings, accumulate=count)
        zoo.train(spec, output=tmp_path / str(count), device="cpu")
        losses[count] = [entry["loss"] for entry in read_log(tmp_path / str(count))]
    assert losses[accumulate] == pytest.approx(losses[1], abs=1e-5)


def test_bfloat16_follows_float32(files, tmp_path):
    losses = {}
    for precision in ("float32", "bfloat16"):
        settings = {"steps": 5, "log": {"every": 1}, "validation": None}
        spec = make_spec(files, **settings, precision=precision)
        zoo.train(spec, output=tmp_path / precision, device="cpu")
        losses[precision] = [entry["loss"] for entry in read_log(tmp_path / precision)]
    assert losses["bfloat16"] != losses["float32"]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], abs=0.05)


@pytest.mark.parametrize(("world", "accumulate"), [(2, 1), (1, 2)])
def test_a_batch_with_a_loss_that_is_not_a_mean_is_not_divided(world, accumulate):
    model, objective = zoo.compose("transformer-tiny"), zoo.objective("transformer-tiny")
    check_split(model, objective, world, accumulate)
    objective.mergeable = False
    check_split(model, objective, 1, 1)
    with pytest.raises(zoo.ZooError, match="'cross-entropy' depends on all examples"):
        check_split(model, objective, world, accumulate)
