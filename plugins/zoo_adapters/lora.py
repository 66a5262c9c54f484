"""Low-rank adaptation of linear layers and embedding tables.

Notation: r rank, D width of the input, O width of the output, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import Adapter, AdapterLayer, Linear, WeightConverter
from zoo_adapters.peft_config import check_config, number, tensor_pairs

LINEAR = ("lora_A.weight", "lora_B.weight")
TABLE = ("lora_embedding_A", "lora_embedding_B")
OPTIONS = ("r", "lora_alpha", "lora_dropout", "use_rslora", "use_dora")
"""Names of tensors and options in files of peft."""
Layers = Mapping[str, Mapping[str, Tensor]]
Targets = Annotated[list[str], Field(min_length=1)]
Rank = Annotated[int, Field(ge=1, le=65_536)]


class LowRankLinear(AdapterLayer):
    """Adds the product of two matrices to a linear layer; A [r, D], B [O, r]."""

    def __init__(self, module: nn.Linear, *, rank: int, scale: float, dropout: float) -> None:
        super().__init__()
        self.scale = scale
        self.dropout = nn.Dropout(dropout)
        self.A = nn.Parameter(module.weight.new_empty(rank, module.in_features))
        self.B = nn.Parameter(module.weight.new_empty(module.out_features, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        nn.init.zeros_(self.B)

    def adapt_output(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor:
        x: Tensor = self.dropout(inputs[0])
        updated: Tensor = output + self.scale * F.linear(F.linear(x, self.A), self.B)
        return updated

    def update(self) -> Tensor:
        """Return what is added to the weight, [O, D]."""
        return self.scale * (self.B @ self.A)

    def merge(self, module: nn.Module) -> None:
        assert isinstance(module, nn.Linear)
        module.weight += self.update()


class LowRankEmbedding(AdapterLayer):
    """Adds the product of two matrices to an embedding table; A [r, V], B [D, r]."""

    def __init__(self, module: nn.Embedding, *, rank: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.padding = module.padding_idx
        self.A = nn.Parameter(module.weight.new_empty(rank, module.num_embeddings))
        self.B = nn.Parameter(module.weight.new_empty(module.embedding_dim, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.A)
        nn.init.normal_(self.B)

    def adapt_output(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor:
        # The row of the padding token stays zero, because it gets no gradient.
        rows = F.embedding(inputs[0], self.A.T, padding_idx=self.padding)  # [..., r]
        updated: Tensor = output + self.scale * F.linear(rows, self.B)
        return updated

    def merge(self, module: nn.Module) -> None:
        assert isinstance(module, nn.Embedding)
        module.weight += self.scale * (self.B @ self.A).T


class Lora(Adapter):
    r"""LoRA: adds a trained matrix of low rank to frozen linear layers and embedding tables.

    .. math::
        y = W x + b + s B A\, \mathrm{dropout}(x), \qquad
        s = \alpha / r, \text{ or } \alpha / \sqrt{r} \text{ if rank-stabilised}

    A is initialised as a linear layer and B with zeros; of an embedding table, A with zeros and B
    from a standard normal distribution, and it has no dropout. An output layer that is tied to an
    embedding table uses the table without the adapter.

    Paper: Hu et al. 2022, equation 3; Kalajdzievski 2023 (rank-stabilised scale).

    Args:
        targets: patterns for the paths of the layers.
        rank: rank r of the added matrix.
        alpha: numerator of the scale.
        dropout: dropout probability of the input of A.
        rank_stabilised: divide alpha by the square root of the rank.

    Shapes:
        those of the adapted layer.
    """

    name: ClassVar[str] = "lora"
    paper: ClassVar[str] = (
        "Hu et al. 2022, LoRA: Low-Rank Adaptation of Large Language Models, arXiv:2106.09685"
    )
    test_params: ClassVar[dict[str, Any]] = {"targets": ["*.{query,value}", "table"], "rank": 2}

    def __init__(
        self,
        *,
        targets: Targets,
        rank: Rank = 8,
        alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 16.0,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        rank_stabilised: bool = False,
    ) -> None:
        super().__init__(targets=targets)
        self.rank, self.alpha, self.dropout = rank, alpha, dropout
        self.rank_stabilised = rank_stabilised
        self.scale = alpha / (math.sqrt(rank) if rank_stabilised else rank)

    def supports(self, module: nn.Module) -> bool:
        # A subclass can use its weight in another way than by a call.
        return type(module) in (nn.Linear, Linear, nn.Embedding)

    def build_layer(self, module: nn.Module) -> AdapterLayer:
        if isinstance(module, nn.Embedding):
            return LowRankEmbedding(module, rank=self.rank, scale=self.scale)
        assert isinstance(module, nn.Linear)
        return LowRankLinear(module, rank=self.rank, scale=self.scale, dropout=self.dropout)

    @classmethod
    def matches_peft(cls, config: Mapping[str, Any]) -> bool:
        return config.get("peft_type") == "LORA" and not config.get("use_dora")

    @classmethod
    def from_peft(
        cls, config: Mapping[str, Any], layers: Layers, converter: WeightConverter
    ) -> tuple[dict[str, Any], Layers]:
        check_config(config, OPTIONS)
        params = {
            "rank": config.get("r", 8),
            "alpha": float(number(config, "lora_alpha", 8)),
            "dropout": float(number(config, "lora_dropout", 0.0)),
            "rank_stabilised": bool(config.get("use_rslora", False)),
        }
        tables = {name for name, tensors in layers.items() if "lora_embedding_A" in tensors}
        pairs = tensor_pairs({n: t for n, t in layers.items() if n not in tables}, LINEAR)
        pairs |= tensor_pairs({n: layers[n] for n in tables}, TABLE)
        converted = converter.low_rank({name: (A, B) for name, (A, B) in pairs.items()})
        return params, {name: {"A": A, "B": B} for name, (A, B) in converted.items()}

    def to_peft(self, layers: Layers, converter: WeightConverter) -> tuple[dict[str, Any], Layers]:
        found: dict[str, dict[str, Tensor]] = {}
        for module, tensors in layers.items():
            is_table = isinstance(self.layers.get_submodule(module), LowRankEmbedding)
            pairs = converter.low_rank({module: (tensors["A"], tensors["B"])}) if is_table else {}
            found |= {name: dict(zip(TABLE, pair, strict=True)) for name, pair in pairs.items()}
        linear = {
            module: (tensors["A"], tensors["B"])
            for module, tensors in layers.items()
            if isinstance(self.layers.get_submodule(module), LowRankLinear)
        }
        for name, pair in converter.low_rank(linear).items():
            found[name] = dict(zip(LINEAR, pair, strict=True))
        config = {
            "peft_type": "LORA",
            "r": self.rank,
            "lora_alpha": self.alpha,
            "lora_dropout": self.dropout,
            "use_rslora": self.rank_stabilised,
            "target_modules": sorted(found),
            "bias": "none",
        }
        return config, found
