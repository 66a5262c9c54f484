"""What adapters need to be exchanged with other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor


class WeightConverter(Protocol):
    """Converts what adapters add to weights between the names of the zoo and another library's."""

    def low_rank(
        self, factors: Mapping[str, tuple[Tensor, Tensor]]
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Convert A [r, inputs] and B [outputs, r] of modules by name.

        Modules that become one have the sum of their ranks if they have no factor in common.
        """

    def outputs(
        self, vectors: Mapping[str, Tensor], *, missing: float | None = None
    ) -> dict[str, Tensor]:
        """Convert vectors with a value for each output of modules by name.

        Args:
            missing: the values of a module without a vector that becomes one with others; None
                rejects it.
        """

    def inputs(self, vectors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Convert vectors with a value for each input of modules by name."""

    def whole(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Convert whole tensors by name."""


LayerTensors = Mapping[str, Mapping[str, Tensor]]
"""The tensors of each adapted module, by the name of the module and their own."""
PeftConfig = dict[str, Any]
"""The content of an ``adapter_config.json``."""
