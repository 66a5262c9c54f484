"""Trained copies of modules."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from zoo.plugin import Adapter, AdapterLayer, WeightConverter
from zoo_adapters.lora import Layers, Targets

SAVED = "modules_to_save"
"""The key of whole modules in the config of peft."""


class CopiedModule(AdapterLayer):
    """Computes the output of a module with additional parameters."""

    replaces_output: ClassVar[bool] = True

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = copy.deepcopy(module).requires_grad_(True)

    def reset_parameters(self) -> None:
        for module in reversed(list(self.module.modules())):
            reset: Any = getattr(module, "reset_parameters", None)
            if reset is not None:
                reset()

    @torch.no_grad()
    def copy_values(self, module: nn.Module) -> None:
        for own, other in zip(self.module.parameters(), module.parameters(), strict=True):
            if not own.is_meta:
                own.copy_(other)

    def adapt_output(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        return self.module(*inputs)

    def merge(self, module: nn.Module) -> None:
        for own, other in zip(self.module.parameters(), module.parameters(), strict=True):
            other.copy_(own)


class ModuleCopy(Adapter):
    r"""Trains copies of whole modules, such as the classifier, which are used instead of them.

    .. math:: y = f_{\theta'}(x), \qquad \theta' = \theta \text{ initially}

    Args:
        targets: patterns for the paths of linear layers, norms, embedding tables or convolutions.

    Shapes:
        those of the adapted module.
    """

    name: ClassVar[str] = "module-copy"
    paper: ClassVar[str] = (
        "Mangrulkar et al. 2022, PEFT: State-of-the-art Parameter-Efficient Fine-Tuning methods, "
        "https://github.com/huggingface/peft (modules_to_save)"
    )
    test_params: ClassVar[dict[str, Any]] = {"targets": ["feed_forward.up", "norm"]}

    def __init__(self, *, targets: Targets) -> None:
        super().__init__(targets=targets)

    def supports(self, module: nn.Module) -> bool:
        # Leaves only: a module with parts can return or record more than an output.
        return not module._modules and any(True for _ in module.parameters())

    def build_layer(self, module: nn.Module) -> AdapterLayer:
        return CopiedModule(module)

    @classmethod
    def matches_peft(cls, config: Mapping[str, Any]) -> bool:
        return "peft_type" not in config and bool(config.get(SAVED))

    def to_peft(self, layers: Layers, converter: WeightConverter) -> tuple[dict[str, Any], Layers]:
        own = {
            f"{module}.{name.removeprefix('module.')}": tensor
            for module, tensors in layers.items()
            for name, tensor in tensors.items()
        }
        found: dict[str, dict[str, Tensor]] = {}
        for name, tensor in converter.whole(own).items():
            module, _, key = name.rpartition(".")
            found.setdefault(module, {})[key] = tensor
        return {SAVED: sorted(found)}, found
