"""The options of a plan: the devices and the batch of one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from zoo.errors import ZooError
from zoo.spec.training import Batching, Training

Strategy = Literal["single", "ddp", "fsdp"]
MAX_DEVICES = 1_000_000
DEFAULT_LENGTH = 128


@dataclass(frozen=True)
class Devices:
    """How a model is distributed, and the number of devices."""

    strategy: Strategy
    count: int

    def __str__(self) -> str:
        return self.strategy if self.strategy == "single" else f"{self.strategy}:{self.count}"


@dataclass(frozen=True)
class BatchSize:
    """The items and the lengths of a batch; the second length is that of the target."""

    items: int
    lengths: tuple[int, ...]

    def __str__(self) -> str:
        return "x".join(map(str, (self.items, *self.lengths)))


def parse_devices(text: str) -> Devices:
    """Parse "single", "ddp:8" or "fsdp:64"."""
    if text == "single":
        return Devices("single", 1)
    match = re.fullmatch(r"(ddp|fsdp):([0-9]{1,7})", text)
    count = int(match[2]) if match else 0
    if not match or not 1 <= count <= MAX_DEVICES:
        raise ZooError(
            f"'{text}' is not a plan; expected 'single', or 'ddp:N' or 'fsdp:N' with the number of "
            f"devices from 1 to {MAX_DEVICES:,}, for example fsdp:64"
        )
    return Devices("ddp" if match[1] == "ddp" else "fsdp", count)


def parse_batch(text: str) -> BatchSize:
    """Parse "32x128" (items and length) or "32x128x100" (also the length of the target)."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8}){1,2}", text):
        raise ZooError(
            f"'{text}' is not a batch; expected ITEMSxLENGTH of one device, for example 32x128, or "
            "ITEMSxLENGTHxLENGTH for source and target, for example 32x128x100"
        )
    items, *lengths = map(int, text.split("x"))
    return BatchSize(items, tuple(lengths))


def default_batch(training: Training | None, devices: Devices) -> tuple[BatchSize, str]:
    """Return the share of the batch of an update that one device has at a time, and its origin."""
    batching = training.batch if training else Batching(items=32)
    accumulate = training.accumulate if training else 1
    known = batching.block or batching.pack or batching.drop_long
    length = known or DEFAULT_LENGTH
    shares = devices.count * accumulate
    total = batching.items or max(1, (batching.tokens or 1) // length)
    unit = f"{batching.items} items" if batching.items else f"{batching.tokens} tokens"
    origin = f"{'train.batch' if training else 'default'}: {unit} per update"
    if not known:
        origin += f", default length {DEFAULT_LENGTH}"
    return BatchSize(-(-total // shares), (length,)), origin
