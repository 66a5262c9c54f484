"""Memory and communication of a training step that is distributed over devices."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from zoo.training.sharding import find_blocks
from zoo_lab.plan.plan_options import Devices
from zoo_lab.plan.step_memory import StepMemory, total_bytes

WORKSPACE = 2 * 32 * 2**20
"""Bytes of cuBLAS on a Hopper GPU: a workspace for the forward and one for the backward pass."""
PREFETCHED = 2
"""Blocks of FSDP that are gathered at the same time: the current one and the next."""


@dataclass(frozen=True)
class Distribution:
    """The bytes of a training step on each of several devices, and what each device sends.

    Attributes:
        averaged: whether there is a second copy of the weights, their moving average.
        accumulate: number of forward passes per update of the weights.
        parameters: bytes of all weights, not rounded.
        trained: bytes of the trained weights, not rounded.
        blocks: bytes of the weights outside of all blocks, and of the largest block.
    """

    devices: Devices
    step: StepMemory
    averaged: bool
    accumulate: int
    parameters: int
    trained: int
    blocks: tuple[int, int]

    def sizes(self) -> dict[str, int]:
        step, share = self.step, self._share
        parts = {
            "weights": share(step.weights),
            "gradients": share(step.gradients),
            "optimiser": share(step.optimiser),
        }
        if self.averaged:
            parts["averaged weights"] = share(step.weights)
        return parts | {"activations": step.activations}

    def at_peak(self) -> dict[str, int]:
        step = self.step
        sizes = self.sizes()
        if self.devices.strategy == "fsdp":
            outside, block = self.blocks
            sizes.pop("activations")
            sizes["gathered weights"] = outside + PREFETCHED * block
            # Gradients are reduced in the last backward pass of an update only.
            sizes["gathered gradients"] = (
                step.gradients if self.accumulate > 1 else min(block, step.gradients)
            )
            sizes["activations and temporary"] = step.transient_peak
        else:
            found = step.at_peak
            kept = step.gradients - found.get("gradients", 0) if self.accumulate > 1 else 0
            sizes["gradients"] = found.get("gradients", 0) + kept
            if found.get("copies"):
                sizes["bfloat16 weights"] = found["copies"]
            sizes["activations"] = found.get("activations", 0) + found.get("batch", 0)
            sizes["temporary"] = found.get("temporary", 0)
        if self.devices.strategy == "ddp":
            sizes["gradient buckets"] = step.gradients
        return sizes | {"workspace": WORKSPACE}

    def communication(self) -> dict[str, int]:
        count = self.devices.count
        fraction = (count - 1) / count
        if self.devices.strategy == "fsdp":
            return {
                "all-gather": int(2 * self.accumulate * fraction * self.parameters),
                "reduce-scatter": int(fraction * self.trained),
            }
        return {"all-reduce": int(2 * fraction * self.trained)} if count > 1 else {}

    def _share(self, size: int) -> int:
        return -(-size // self.devices.count) if self.devices.strategy == "fsdp" else size


def block_bytes(model: nn.Module) -> tuple[int, int]:
    """Return the bytes of the weights outside of all blocks of FSDP, and of the largest block."""
    blocks = find_blocks(model)
    sizes = [total_bytes(block.parameters()) for block in blocks]
    inside = {id(weight) for block in blocks for weight in block.parameters()}
    outside = (weight for weight in model.parameters() if id(weight) not in inside)
    return total_bytes(outside), max(sizes, default=0)
