"""Interface of adapters, which change the outputs of a frozen model with few parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from torch import nn

from zoo.errors import InvalidParameter, ZooError
from zoo.interfaces.adapter_exchange import LayerTensors, WeightConverter
from zoo.interfaces.component import Component
from zoo.interfaces.path_pattern import select_paths


class AdapterLayer(nn.Module, ABC):
    """The adapter of one module, which the adapted model calls around the module.

    Its parameters have the device and the dtype of the module. The module is not a submodule of it.
    Several adapters of a module are applied in their order: first they adapt the inputs, then the
    output.

    Attributes:
        replaces_output: whether `adapt_output` does not use the output of the module. Such a layer
            is applied before others, which adapt its output; one of them is used for a module.
    """

    replaces_output: ClassVar[bool] = False

    @abstractmethod
    def reset_parameters(self) -> None:
        """Set initial values with which `adapt_inputs` and `adapt_output` change nothing."""

    def copy_values(self, module: nn.Module) -> None:
        """Set the parameters whose initial values are those of the module; default: none.

        Called after `reset_parameters`, and again when the weights of the module are loaded.
        """

    def adapt_inputs(
        self, module: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and keyword arguments with which the module is called."""
        return inputs, options

    def adapt_output(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        """Return the output of the module, changed; `inputs` are its positional arguments."""
        return output

    def merge(self, module: nn.Module) -> None:
        """Change the parameters of the module, so that it computes the same without this layer.

        Called without gradients.

        Raises:
            ZooError: if parameters of the module cannot express what this layer computes.
        """
        raise ZooError(f"a {type(self).__name__} cannot be merged into a {type(module).__name__}")


class Adapter(Component, nn.Module, ABC):
    """Adapts modules of a model, whose own parameters are frozen.

    The section ``adapters`` of a spec names adapters, and `zoo.adapt` adds them to a model. The
    layers of an adapter are modules of it, ``layers.encoder.blocks.0.attention.query``, and run
    where the module with this path is called as a module.

    Laws:
        untrained adapters change nothing: the outputs are those of the model without them;
        each parameter changes an output; merged equals applied, or merging raises ZooError;
        only parameters of adapters have gradients; saving and loading is bit-exact; a copy of the
        model has its own adapters, and switched off they change nothing.

    Attributes:
        targets: patterns for the paths of the modules, such as ``*.attention.{query,value}``.
        enabled: whether it is applied.
    """

    kind: ClassVar[str] = "adapter"

    def __init__(self, *, targets: Sequence[str]) -> None:
        super().__init__()
        self.targets = list(targets)
        self.enabled = True
        self.layers = nn.Module()

    @abstractmethod
    def supports(self, module: nn.Module) -> bool:
        """Return whether a module can be adapted; others are not selected by patterns."""

    @abstractmethod
    def build_layer(self, module: nn.Module) -> AdapterLayer:
        """Return the layer of a module, on the device and with the dtype of the module."""

    def build_layers(self, modules: Mapping[str, nn.Module]) -> Iterator[tuple[str, AdapterLayer]]:
        """Yield path and layer of each module that is adapted.

        Raises:
            InvalidParameter: if a pattern matches no module that can be adapted.
        """
        for path in self.select("targets", self.targets, modules):
            yield path, self.build_layer(modules[path])

    @classmethod
    def matches_peft(cls, config: Mapping[str, Any]) -> bool:
        """Return whether an ``adapter_config.json`` of peft describes this adapter."""
        return False

    @classmethod
    def check_peft(cls, config: Mapping[str, Any]) -> None:
        """Raise ZooError for an option of a matching config that is not supported, with its name.

        It is called before the base is loaded, which may download it.
        """

    @classmethod
    def from_peft(
        cls, config: Mapping[str, Any], layers: LayerTensors, converter: WeightConverter
    ) -> tuple[dict[str, Any], LayerTensors]:
        """Return the parameters of this adapter, without `targets`, and its tensors by module.

        Args:
            config: a config that matches and that `check_peft` accepts.
            layers: the tensors of the file, by module and name, such as ``lora_A.weight``.
            converter: converts from peft to the zoo.

        Raises:
            ZooError: for an option that is not supported, with its name.
        """
        raise ZooError(f"adapter '{cls.name}' cannot be imported")

    def to_peft(
        self, layers: LayerTensors, converter: WeightConverter
    ) -> tuple[dict[str, Any], LayerTensors]:
        """Return the config and the tensors for peft, given the tensors of each adapted module."""
        raise ZooError(f"adapter '{self.name}' has no counterpart in peft")

    def select(
        self, parameter: str, patterns: Sequence[str], modules: Mapping[str, nn.Module]
    ) -> list[str]:
        """Return the paths of supported modules that match a pattern of a parameter."""
        supported = [path for path, module in modules.items() if self.supports(module)]
        matched: set[str] = set()
        for index, pattern in enumerate(patterns):
            try:
                matched.update(select_paths([pattern], supported))
            except ZooError as error:
                message = str(error).replace(
                    "nothing in the model", f"no module that '{self.name}' can adapt"
                )
                raise InvalidParameter(f"{parameter}[{index}]", message) from None
        return [path for path in supported if path in matched]
