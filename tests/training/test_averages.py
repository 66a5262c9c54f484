"""Averages of weights."""

import numpy as np
import torch
from torch import nn
from training_kit import assert_equal_weights, weights

import zoo
from zoo.training.averages import MovingAverage


def test_known_values_of_the_moving_average():
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    average = MovingAverage(model, 0.5)
    nn.init.constant_(model.weight, 3.0)
    average.update(1)  # decay 2 / 11
    torch.testing.assert_close(average.averages[0], torch.tensor([[2 / 11 + 3 * 9 / 11]]))
    average.update(100)  # decay 0.5
    expected = (2 / 11 + 3 * 9 / 11 + 3) / 2
    torch.testing.assert_close(average.averages[0], torch.tensor([[expected]]))


def test_the_average_agrees_with_torch():
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    model = nn.Linear(3, 2)
    average = MovingAverage(model, 0.9)
    reference = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    reference.update_parameters(model)  # the first call copies
    for step in range(100, 110):  # the decay does not depend on the step here
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        average.update(step)
        reference.update_parameters(model)
    for own, other in zip(average.averages, reference.module.parameters(), strict=True):
        torch.testing.assert_close(own, other.detach())


def test_running_statistics_are_averaged_like_torch():
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    average = MovingAverage(model, 0.9)
    reference = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    reference.update_parameters(model)  # the first call copies
    for step in range(100, 110):
        model(torch.randn(8, 3))
        average.update(step)
        reference.update_parameters(model)
    current = model[1].running_var.clone()
    with average.applied():
        for name in ("running_mean", "running_var"):
            torch.testing.assert_close(getattr(model[1], name), getattr(reference.module[1], name))
        assert not torch.equal(model[1].running_var, current)
    assert torch.equal(model[1].running_var, current)
    assert model[1].num_batches_tracked == 10


def test_other_buffers_are_not_averaged():
    model = nn.Linear(1, 1)
    model.register_buffer("mask", torch.tensor([-torch.inf]))
    average = MovingAverage(model, 0.9)
    average.update(1)
    with average.applied():
        assert model.mask == -torch.inf


def test_the_weights_are_restored_after_the_block():
    model = nn.Linear(3, 2)
    average = MovingAverage(model, 0.9)
    first = model.weight.clone()
    with torch.no_grad():
        model.weight.add_(1.0)
    second = model.weight.clone()
    with average.applied():
        assert torch.equal(model.weight, first)
    assert torch.equal(model.weight, second)
    assert torch.equal(average.averages[0], first)


def test_a_resumed_run_restores_averaged_statistics(tmp_path):
    def train(steps, name, **options):
        spec = {
            "extends": "image-small",
            "model": {"source": {"channels": 1}, "classes": 2},
            "preprocessing": {"target": {"type": "label", "classes": [0, 1]}},
            "train": {
                "data": {"type": "idx", "images": str(images), "labels": str(labels)},
                "optimiser": {"type": "adam", "lr": 0.01},
                "batch": {"items": 4},
                "steps": steps,
                "average": {"ema": 0.9},
            },
        }
        zoo.train(spec, output=tmp_path / name, device="cpu", **options)

    images, labels = tmp_path / "images", tmp_path / "labels"
    pixels = np.random.default_rng(0).integers(0, 256, (12, 8, 8), np.uint8)
    images.write_bytes(np.array([2051, 12, 8, 8], ">i4").tobytes() + pixels.tobytes())
    labels.write_bytes(np.array([2049, 12], ">i4").tobytes() + bytes([0, 1] * 6))

    train(4, "whole")
    train(2, "parts")
    train(4, "parts", resume=True)

    assert_equal_weights(
        tmp_path / "whole" / "model.safetensors", tmp_path / "parts" / "model.safetensors"
    )
    averages = weights(tmp_path / "whole" / "model.safetensors")
    current = weights(tmp_path / "whole/checkpoints/step-00000004/optimiser.safetensors")
    name = "source.backbone.layers.0.norm.running_mean"
    assert not torch.equal(averages[name], current[f"weights/{name}"])
