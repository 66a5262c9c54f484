"""Steps of an external memory, compiled in captured training steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, Call, reference
from zoo_fast.device.compiled_function import CompiledFunction, why_not_compiled
from zoo_memory.dnc import DNC
from zoo_memory.memory_encoder import MemoryEncoder, MemoryState
from zoo_memory.ntm import NTM


class _CompiledMemory(Acceleration):
    """Compiles the update of the memory in a time step.

    It consists of some hundred operations on small tensors, whose kernels take longer to start than
    to run. Controller and interface are layers with weights, and are not part of it.
    """

    differentiable: ClassVar[bool] = True
    called_parts: ClassVar[tuple[str, ...]] = ("controller", "say")

    def __init__(self) -> None:
        self._compiled = CompiledFunction(f"the memory step of '{self.serves.name}'")

    def why_not(self, target: MemoryEncoder, device: torch.device) -> str | None:
        return why_not_compiled(device)

    def next_memory(
        self, target: MemoryEncoder, interface: Tensor, memory: MemoryState, valid: Tensor
    ) -> MemoryState:
        names = sorted(memory)
        step = partial(_step, reference(target, "next_memory"), names)
        values = self._compiled(step, interface, valid, *(memory[name] for name in names))
        updated = dict(zip(names, values, strict=True))
        return {name: updated[name] for name in memory}

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        device, generator = torch.empty(0).device, torch.Generator("cpu").manual_seed(0)
        encoder = self.serves(input_dim=3, hidden=5, slots=4, width=3, read_heads=2)
        encoder = encoder.to(device, dtype)
        for B in (1, 3):
            inputs = torch.randn(B, 2, 3, generator=generator, device="cpu").to(device, dtype)
            memory = {
                name: torch.rand(value.shape, generator=generator, device="cpu").to(value) / 4
                for name, value in encoder.initial_memory(inputs).items()
            }
            memory["read"] = inputs.new_zeros(B, encoder.read_dim)
            shape = (B, encoder.interface_dim)
            interface = torch.randn(shape, generator=generator, device="cpu").to(inputs)
            valid = torch.arange(B, device=device) != 1
            yield Call(encoder, (interface, memory, valid), method="next_memory")


class CompiledDNC(_CompiledMemory):
    """Compiles the memory step of a differentiable neural computer in captured training steps."""

    name: ClassVar[str] = "compiled-dnc"
    serves: ClassVar[type[Any]] = DNC


class CompiledNTM(_CompiledMemory):
    """Compiles the memory step of a neural Turing machine in captured training steps."""

    name: ClassVar[str] = "compiled-ntm"
    serves: ClassVar[type[Any]] = NTM


def _step(
    next_memory: Callable[..., MemoryState],
    names: Sequence[str],
    interface: Tensor,
    valid: Tensor,
    *values: Tensor,
) -> list[Tensor]:
    updated = next_memory(interface, dict(zip(names, values, strict=True)), valid)
    return [updated[name] for name in names]
