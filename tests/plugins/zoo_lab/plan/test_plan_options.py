"""Parsing of ``--plan`` and ``--batch``, and the default batch."""

import pytest

from zoo.errors import ZooError
from zoo.registry.blueprint import Blueprint
from zoo.spec.training import Batching, Training
from zoo_lab.plan.plan_options import (
    BatchSize,
    Devices,
    default_batch,
    parse_batch,
    parse_devices,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("single", Devices("single", 1)),
        ("ddp:8", Devices("ddp", 8)),
        ("fsdp:64", Devices("fsdp", 64)),
    ],
)
def test_devices(text, expected):
    assert parse_devices(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    "text", ["", "ddp", "fsdp:0", "fsdp:-1", "single:2", "zero:8", "ddp:9999999"]
)
def test_invalid_devices(text):
    with pytest.raises(ZooError, match="is not a plan; expected 'single', or 'ddp:N'") as caught:
        parse_devices(text)
    assert f"'{text}'" in str(caught.value)


def test_batches():
    assert parse_batch("32x128") == BatchSize(32, (128,))
    assert parse_batch("32x128x100") == BatchSize(32, (128, 100))
    assert str(parse_batch("32x128x100")) == "32x128x100"


@pytest.mark.parametrize("text", ["", "32", "0x128", "32x0", "32x-1", "ax3", "1x2x3x4", "1.5x3"])
def test_invalid_batches(text):
    with pytest.raises(ZooError, match="is not a batch; expected ITEMSxLENGTH") as caught:
        parse_batch(text)
    assert f"'{text}'" in str(caught.value)


def _training(accumulate=1, **batching):
    unused = Blueprint(object, {})
    batch = Blueprint(Batching, batching)
    return Blueprint(
        Training,
        {
            "data": unused,
            "optimiser": unused,
            "steps": 1,
            "batch": batch,
            "accumulate": accumulate,
        },
    ).build()


@pytest.mark.parametrize(
    ("training", "devices", "expected"),
    [
        (None, "single", "32x128"),
        (None, "ddp:3", "11x128"),
        (_training(items=64), "fsdp:4", "16x128"),
        (_training(items=64, accumulate=2), "fsdp:4", "8x128"),
        (_training(items=8, block=1024), "ddp:2", "4x1024"),
        (_training(tokens=4096), "ddp:2", "16x128"),
        (_training(tokens=4096, drop_long=64), "ddp:2", "32x64"),
        (_training(tokens=100), "ddp:8", "1x128"),
    ],
)
def test_the_default_batch_is_the_share_of_a_device(training, devices, expected):
    size, origin = default_batch(training, parse_devices(devices))
    assert str(size) == expected
    assert origin.startswith("train.batch: " if training else "default: ")
    assert ("default length" in origin) == expected.endswith("x128")
