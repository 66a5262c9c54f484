"""Weight-decomposed low-rank adaptation of linear layers.

Notation: r rank, D width of the input, O width of the output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import AdapterLayer, Linear, WeightConverter
from zoo_adapters.lora import Layers, Lora, LowRankLinear

MAGNITUDE = "lora_magnitude_vector"


class DecomposedLinear(LowRankLinear):
    """A low-rank update of the direction of each row of the weight, with trained magnitudes [O]."""

    def __init__(self, module: nn.Linear, *, rank: int, scale: float, dropout: float) -> None:
        super().__init__(module, rank=rank, scale=scale, dropout=dropout)
        self.magnitude = nn.Parameter(module.weight.new_ones(module.out_features))

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if "magnitude" in self._parameters:
            nn.init.ones_(self.magnitude)

    @torch.no_grad()
    def copy_values(self, module: nn.Module) -> None:
        if not self.magnitude.is_meta:
            assert isinstance(module, nn.Linear)
            self.magnitude.copy_(torch.linalg.norm(module.weight, dim=1))

    def adapt_output(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor:
        assert isinstance(module, nn.Linear)
        x: Tensor = self.dropout(inputs[0])
        if self.training and self.dropout.p > 0:
            straight = F.linear(x, module.weight)
        else:
            straight = output if module.bias is None else output - module.bias
        low_rank = self.scale * F.linear(F.linear(x, self.A), self.B)
        factor = self.factor(module)
        changed: Tensor = output + (factor - 1) * straight + factor * low_rank
        return changed

    def factor(self, module: nn.Linear) -> Tensor:
        """Return the quotient [O] of the magnitudes and the norms of the rows."""
        # The norm is a constant in the backward pass (section 4.3 of the paper).
        norm = torch.linalg.norm(module.weight + self.update().detach(), dim=1)
        factor: Tensor = self.magnitude / norm.detach()
        return factor

    def merge(self, module: nn.Module) -> None:
        assert isinstance(module, nn.Linear)
        factor = self.factor(module)
        module.weight.copy_(factor[:, None] * (module.weight + self.update()))


class Dora(Lora):
    r"""DoRA: a trained magnitude and a low-rank update of the direction of each row of a weight.

    .. math::
        y = m \odot \frac{W + s B A}{\lVert W + s B A \rVert_{\text{row}}} x + b

    m is initialised with the norms of the rows of W. The norm in the denominator is a constant in
    the backward pass (section 4.3). Dropout is applied to x as in LoRA, and, as in the authors'
    code, also to the part of the frozen weight that the magnitude adds.

    Paper: Liu et al. 2024, equation 5.

    Args:
        targets: patterns for the paths of the layers.
        rank: rank r of the added matrix.
        alpha: numerator of the scale s.
        dropout: dropout probability of the input of A.
        rank_stabilised: divide alpha by the square root of the rank, instead of by the rank.
        ranks: rank of some layers, by pattern; the first that matches a layer is used.
        alphas: alpha of some layers, by pattern.

    Shapes:
        those of the adapted layer.
    """

    name: ClassVar[str] = "dora"
    paper: ClassVar[str] = (
        "Liu et al. 2024, DoRA: Weight-Decomposed Low-Rank Adaptation, arXiv:2402.09353"
    )
    test_params: ClassVar[dict[str, Any]] = {"targets": ["*.{query,value}"], "rank": 2}

    def supports(self, module: nn.Module) -> bool:
        return type(module) in (nn.Linear, Linear)

    def build_low_rank(self, module: nn.Module, rank: int, scale: float) -> AdapterLayer:
        assert isinstance(module, nn.Linear)
        return DecomposedLinear(module, rank=rank, scale=scale, dropout=self.dropout)

    @classmethod
    def matches_peft(cls, config: Mapping[str, Any]) -> bool:
        return config.get("peft_type") == "LORA" and bool(config.get("use_dora"))

    @classmethod
    def from_peft(
        cls, config: Mapping[str, Any], layers: Layers, converter: WeightConverter
    ) -> tuple[dict[str, Any], Layers]:
        found = {name: dict(tensors) for name, tensors in layers.items()}
        magnitudes = {
            name: tensors.pop(MAGNITUDE).flatten()
            for name, tensors in found.items()
            if MAGNITUDE in tensors
        }
        missing = [name for name in found if name not in magnitudes]
        if missing:
            raise ZooError(f"{missing[0]} has no {MAGNITUDE}")
        params, converted = super().from_peft(config, found, converter)
        rows = converter.outputs(magnitudes)
        return params, {
            name: {**tensors, "magnitude": rows[name]} for name, tensors in converted.items()
        }

    def to_peft(self, layers: Layers, converter: WeightConverter) -> tuple[dict[str, Any], Layers]:
        config, found = super().to_peft(layers, converter)
        rows = converter.outputs({name: tensors["magnitude"] for name, tensors in layers.items()})
        merged = {name: {**tensors, MAGNITUDE: rows[name]} for name, tensors in found.items()}
        return {**config, "use_dora": True}, merged
