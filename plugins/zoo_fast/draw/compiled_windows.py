"""Windows of DRAW, compiled in captured training steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, Call, reference
from zoo_draw.read_write import Reader, Writer
from zoo_fast.device.compiled_function import CompiledFunction, why_not_compiled


class _CompiledWindow(Acceleration):
    """Compiles filter banks and the products with them. The layers that compute the parameters of
    the grid and the patches have weights, and are not part of it."""

    differentiable: ClassVar[bool] = True
    called_parts: ClassVar[tuple[str, ...]] = ("place", "patch")
    _method: ClassVar[str]

    def __init__(self) -> None:
        self._compiled = CompiledFunction(f"the {self._method} of DRAW")

    def why_not(self, target: Reader | Writer, device: torch.device) -> str | None:
        return why_not_compiled(device)

    def _apply(self, target: Reader | Writer, inputs: Tensor, parameters: Tensor) -> Tensor:
        function = partial(_in_list, reference(target, self._method))
        (output,) = self._compiled(function, inputs, parameters)
        return output

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        device, generator = torch.empty(0).device, torch.Generator("cpu").manual_seed(0)
        for B, shape, grid in ((1, (1, 5, 4), 1), (3, (2, 4, 7), 3)):
            target = self.serves(grid=grid, hidden=3, shape=shape).to(device, dtype)
            size = shape if self.serves is Reader else (shape[0], grid, grid)
            inputs, parameters = (
                torch.randn(size, generator=generator, device="cpu").to(device, dtype)
                for size in ((B, *size), (B, 5))
            )
            yield Call(target, (inputs, parameters), method=self._method)


class CompiledReader(_CompiledWindow):
    """Compiles reading through a grid of filters in captured training steps."""

    name: ClassVar[str] = "compiled-reader"
    serves: ClassVar[type[Any]] = Reader
    _method: ClassVar[str] = "read_window"

    def read_window(self, target: Reader, inputs: Tensor, parameters: Tensor) -> Tensor:
        return self._apply(target, inputs, parameters)


class CompiledWriter(_CompiledWindow):
    """Compiles writing through a grid of filters in captured training steps."""

    name: ClassVar[str] = "compiled-writer"
    serves: ClassVar[type[Any]] = Writer
    _method: ClassVar[str] = "write_window"

    def write_window(self, target: Writer, patches: Tensor, parameters: Tensor) -> Tensor:
        return self._apply(target, patches, parameters)


def _in_list(function: Callable[..., Tensor], *tensors: Tensor) -> list[Tensor]:
    return [function(*tensors)]
