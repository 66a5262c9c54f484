"""Trained scales of the inputs or outputs of linear layers.

Notation: D width of the input, O width of the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from zoo.plugin import Adapter, AdapterLayer, Linear, WeightConverter
from zoo_adapters.lora import Layers, Targets
from zoo_adapters.peft_config import check_config, tensor_pairs

SCALE = "ia3_l"


class ScaledOutput(AdapterLayer):
    """Multiplies the output of a linear layer by a vector [O]."""

    def __init__(self, module: nn.Linear) -> None:
        super().__init__()
        self.scale = nn.Parameter(module.weight.new_ones(module.out_features))

    def reset_parameters(self) -> None:
        nn.init.ones_(self.scale)

    def adapt_output(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor:
        scaled: Tensor = output * self.scale
        return scaled

    def merge(self, module: nn.Module) -> None:
        assert isinstance(module, nn.Linear)
        module.weight.mul_(self.scale[:, None])
        if module.bias is not None:
            module.bias.mul_(self.scale)


class ScaledInput(AdapterLayer):
    """Multiplies the input of a linear layer by a vector [D]."""

    def __init__(self, module: nn.Linear) -> None:
        super().__init__()
        self.scale = nn.Parameter(module.weight.new_ones(module.in_features))

    def reset_parameters(self) -> None:
        nn.init.ones_(self.scale)

    def adapt_inputs(
        self, module: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (inputs[0] * self.scale, *inputs[1:]), options

    def merge(self, module: nn.Module) -> None:
        assert isinstance(module, nn.Linear)
        module.weight.mul_(self.scale)


class Ia3(Adapter):
    r"""IA3: trained scales of keys, values and hidden states of feed-forward networks.

    .. math::
        \mathrm{softmax}\left(\frac{Q (l_k \odot K)^\top}{\sqrt{d}}\right) (l_v \odot V), \qquad
        W_2 (l_{ff} \odot f(W_1 x))

    All scales are initialised with ones.

    Paper: Liu et al. 2022, section 3.3.

    Args:
        targets: patterns for the paths of linear layers whose outputs are scaled: keys and values.
        inputs: patterns for the paths of linear layers whose inputs are scaled: the second layers
            of feed-forward networks.

    Shapes:
        those of the adapted layer.
    """

    name: ClassVar[str] = "ia3"
    paper: ClassVar[str] = (
        "Liu et al. 2022, Few-Shot Parameter-Efficient Fine-Tuning is Better and Cheaper than "
        "In-Context Learning, arXiv:2205.05638"
    )
    test_params: ClassVar[dict[str, Any]] = {
        "targets": ["*.{key,value}"],
        "inputs": ["feed_forward.down"],
    }

    def __init__(self, *, targets: Targets, inputs: list[str] = []) -> None:  # noqa: B006
        super().__init__(targets=targets)
        self.inputs = list(inputs)

    def supports(self, module: nn.Module) -> bool:
        return type(module) in (nn.Linear, Linear)

    def build_layer(self, module: nn.Module) -> AdapterLayer:
        assert isinstance(module, nn.Linear)
        return ScaledOutput(module)

    def build_layers(self, modules: Mapping[str, nn.Module]) -> Iterator[tuple[str, AdapterLayer]]:
        scaled = self.select("inputs", self.inputs, modules)
        for path in scaled:
            module = modules[path]
            assert isinstance(module, nn.Linear)
            yield path, ScaledInput(module)
        for path, layer in super().build_layers(modules):
            if path not in scaled:
                yield path, layer

    @classmethod
    def matches_peft(cls, config: Mapping[str, Any]) -> bool:
        return config.get("peft_type") == "IA3"

    @classmethod
    def check_peft(cls, config: Mapping[str, Any]) -> None:
        check_config(config, ("feedforward_modules",))

    @classmethod
    def from_peft(
        cls, config: Mapping[str, Any], layers: Layers, converter: WeightConverter
    ) -> tuple[dict[str, Any], Layers]:
        scales = {name: scale for name, (scale,) in tensor_pairs(layers, (SCALE,)).items()}
        # Scales of outputs have the shape [O, 1], those of inputs [1, D].
        inputs = converter.inputs({n: s[0] for n, s in scales.items() if s.shape[0] == 1})
        outputs = converter.outputs({n: s[:, 0] for n, s in scales.items() if s.shape[0] != 1})
        found = {name: {"scale": scale} for name, scale in (inputs | outputs).items()}
        return {"inputs": sorted(inputs)}, found

    def to_peft(self, layers: Layers, converter: WeightConverter) -> tuple[dict[str, Any], Layers]:
        is_input = {
            name: isinstance(self.layers.get_submodule(name), ScaledInput) for name in layers
        }
        inputs = converter.inputs({n: t["scale"] for n, t in layers.items() if is_input[n]})
        scales = {n: t["scale"] for n, t in layers.items() if not is_input[n]}
        outputs = converter.outputs(scales, missing=1.0)
        config = {
            "peft_type": "IA3",
            "target_modules": sorted(inputs | outputs),
            "feedforward_modules": sorted(inputs),
        }
        found = {name: {SCALE: scale[None]} for name, scale in inputs.items()}
        return config, found | {name: {SCALE: scale[:, None]} for name, scale in outputs.items()}
