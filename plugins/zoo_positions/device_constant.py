"""Numbers that are copied to each device once."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class DeviceConstant:
    """A tensor of given numbers on each device.

    It is kept, since the copy to a GPU waits for the device, which is not possible in captured
    graphs.

    Args:
        values: the numbers.
    """

    def __init__(self, values: Sequence[float]) -> None:
        self.values = values
        self._tensors: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"values": self.values, "_tensors": {}}

    def tensor(self, like: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the numbers on the device of ``like``."""
        # Subclasses of tensors, such as fake tensors, cannot be kept for other calls.
        if torch.compiler.is_compiling() or type(like) is not Tensor or like.is_meta:
            return torch.tensor(self.values, dtype=dtype, device=like.device)
        key = like.device, dtype
        found = self._tensors.get(key)
        if found is None:
            # Tensors of inference mode could not be used in training later.
            with torch.inference_mode(False):
                made = torch.tensor(self.values, dtype=dtype, device=like.device)
            found = self._tensors.setdefault(key, made)  # of the first thread, for captured graphs
        return found
