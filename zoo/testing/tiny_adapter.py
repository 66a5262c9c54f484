"""A minimal adapter, for the laws."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from zoo.interfaces import Adapter, AdapterLayer


class TinyAdapterLayer(AdapterLayer):
    """A bias after a linear layer."""

    def __init__(self, module: nn.Linear) -> None:
        super().__init__()
        self.shift = nn.Parameter(module.weight.new_zeros(module.out_features))

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.shift)

    def adapt_output(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor:
        shifted: Tensor = output + self.shift
        return shifted

    def merge(self, module: nn.Module) -> None:
        module.bias += self.shift  # type: ignore[operator]


class TinyAdapter(Adapter):
    """Adds a bias to linear layers that have one."""

    name: ClassVar[str] = "tiny"

    def __init__(self) -> None:
        super().__init__(targets=["attention.value", "out"])

    def supports(self, module: nn.Module) -> bool:
        return isinstance(module, nn.Linear) and module.bias is not None

    def build_layer(self, module: nn.Module) -> AdapterLayer:
        assert isinstance(module, nn.Linear)
        return TinyAdapterLayer(module)
