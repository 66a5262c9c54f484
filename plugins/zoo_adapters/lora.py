"""Low-rank adaptation of linear layers and embedding tables.

Notation: r rank, D width of the input, O width of the output, V vocabulary.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Adapter, AdapterLayer, Linear, WeightConverter
from zoo_adapters.peft_config import (
    boolean,
    check_config,
    integer,
    module_values,
    number,
    positive,
    tensor_pairs,
)

LINEAR = ("lora_A.weight", "lora_B.weight")
TABLE = ("lora_embedding_A", "lora_embedding_B")
OPTIONS = (
    *("r", "lora_alpha", "lora_dropout", "use_rslora", "use_dora"),
    *("rank_pattern", "alpha_pattern"),
)
"""Names of tensors and options in files of peft."""
Layers = Mapping[str, Mapping[str, Tensor]]
Size = tuple[int, float]
"""The rank and the alpha of a layer."""
Targets = Annotated[list[str], Field(min_length=1)]
Rank = Annotated[int, Field(ge=1, le=65_536)]
Alpha = Annotated[float, Field(gt=0, allow_inf_nan=False)]


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
        ranks: rank of some layers, by pattern; the first that matches a layer is used.
        alphas: alpha of some layers, by pattern.

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
        alpha: Alpha = 16.0,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        rank_stabilised: bool = False,
        ranks: Mapping[str, Rank] | None = None,
        alphas: Mapping[str, Alpha] | None = None,
    ) -> None:
        super().__init__(targets=targets)
        self.rank, self.alpha, self.dropout = rank, alpha, dropout
        self.rank_stabilised = rank_stabilised
        self.ranks, self.alphas = dict(ranks or {}), dict(alphas or {})
        self.sizes: dict[str, Size] = {}  # of each adapted layer

    def supports(self, module: nn.Module) -> bool:
        # A subclass can use its weight in another way than by a call.
        return type(module) in (nn.Linear, Linear, nn.Embedding)

    def build_layers(self, modules: Mapping[str, nn.Module]) -> Iterator[tuple[str, AdapterLayer]]:
        chosen = {path: modules[path] for path in self.select("targets", self.targets, modules)}
        ranks = self._values("ranks", self.rank, self.ranks, chosen)
        alphas = self._values("alphas", self.alpha, self.alphas, chosen)
        for path, module in chosen.items():
            rank, alpha = int(ranks[path]), alphas[path]
            self.sizes[path] = rank, alpha
            yield path, self.build_low_rank(module, rank, self.scale(rank, alpha))

    def _values(
        self,
        parameter: str,
        default: float,
        by_pattern: Mapping[str, float],
        modules: Mapping[str, nn.Module],
    ) -> dict[str, float]:
        """Return the value of each module: that of the first pattern that matches its path."""
        values = dict.fromkeys(modules, default)
        for pattern, value in reversed(list(by_pattern.items())):
            values |= dict.fromkeys(self.select(parameter, [pattern], modules), value)
        return values

    def scale(self, rank: int, alpha: float) -> float:
        """Return the scale s of a layer."""
        return alpha / (math.sqrt(rank) if self.rank_stabilised else rank)

    def build_layer(self, module: nn.Module) -> AdapterLayer:
        return self.build_low_rank(module, self.rank, self.scale(self.rank, self.alpha))

    def build_low_rank(self, module: nn.Module, rank: int, scale: float) -> AdapterLayer:
        """Return the layer of a module with its rank and scale."""
        if isinstance(module, nn.Embedding):
            return LowRankEmbedding(module, rank=rank, scale=scale)
        assert isinstance(module, nn.Linear)
        return LowRankLinear(module, rank=rank, scale=scale, dropout=self.dropout)

    @classmethod
    def matches_peft(cls, config: Mapping[str, Any]) -> bool:
        return config.get("peft_type") == "LORA" and not config.get("use_dora")

    @classmethod
    def check_peft(cls, config: Mapping[str, Any]) -> None:
        check_config(config, OPTIONS)

    @classmethod
    def from_peft(
        cls, config: Mapping[str, Any], layers: Layers, converter: WeightConverter
    ) -> tuple[dict[str, Any], Layers]:
        boolean(config, "use_dora")
        rank, alpha = integer(config, "r", 8), float(positive(config, "lora_alpha", 8))
        params: dict[str, Any] = {
            "rank": rank,
            "alpha": alpha,
            "dropout": float(number(config, "lora_dropout", 0.0)),
            "rank_stabilised": boolean(config, "use_rslora"),
        }
        tables = {name for name, tensors in layers.items() if "lora_embedding_A" in tensors}
        pairs = tensor_pairs({n: t for n, t in layers.items() if n not in tables}, LINEAR)
        pairs |= tensor_pairs({n: layers[n] for n in tables}, TABLE)
        ranks = module_values(config, "rank_pattern", pairs, rank)
        for name, (A, B) in pairs.items():
            if not A.shape[0] == B.shape[1] == ranks[name]:
                found = A.shape[0] if A.shape[0] != ranks[name] else B.shape[1]
                raise ZooError(f"{name} has the rank {found}, but the config {ranks[name]}")
        alphas = module_values(config, "alpha_pattern", pairs, alpha)
        sizes = {name: (int(ranks[name]), float(alphas[name])) for name in pairs}
        converted, converted_sizes = _convert(pairs, sizes, converter, params["rank_stabilised"])
        for key, index, usual in (("ranks", 0, rank), ("alphas", 1, alpha)):
            values = {name: size[index] for name, size in converted_sizes.items()}
            other = {name: value for name, value in values.items() if value != usual}
            params |= {key: other} if other else {}
        return params, {name: {"A": A, "B": B} for name, (A, B) in converted.items()}

    def to_peft(self, layers: Layers, converter: WeightConverter) -> tuple[dict[str, Any], Layers]:
        found: dict[str, dict[str, Tensor]] = {}
        sizes: dict[str, Size] = {}
        pairs = {module: (tensors["A"], tensors["B"]) for module, tensors in layers.items()}
        for kind, names in ((LowRankEmbedding, TABLE), (LowRankLinear, LINEAR)):
            layer = self.layers.get_submodule
            chosen = {name: pair for name, pair in pairs.items() if isinstance(layer(name), kind)}
            converted, new = _convert(chosen, self.sizes, converter, self.rank_stabilised)
            sizes |= new
            for name, pair in converted.items():
                found[name] = dict(zip(names, pair, strict=True))
        ((rank, alpha), _) = Counter(sizes.values()).most_common(1)[0]
        config = {
            "peft_type": "LORA",
            "r": rank,
            "lora_alpha": alpha,
            "rank_pattern": {re.escape(n): r for n, (r, _) in sizes.items() if r != rank},
            "alpha_pattern": {re.escape(n): a for n, (_, a) in sizes.items() if a != alpha},
            "lora_dropout": self.dropout,
            "use_rslora": self.rank_stabilised,
            "target_modules": sorted(found),
            "bias": "none",
        }
        return config, found


def _convert(
    pairs: Mapping[str, tuple[Tensor, ...]],
    sizes: Mapping[str, Size],
    converter: WeightConverter,
    rank_stabilised: bool,
) -> tuple[dict[str, tuple[Tensor, Tensor]], dict[str, Size]]:
    """Convert A and B of modules by name, those of one size together, with their sizes.

    Modules of different sizes that are one module in the other library become one of the sum of
    their ranks, with the scale of the first.
    """
    found: dict[str, tuple[Tensor, Tensor]] = {}
    first: dict[str, Size] = {}

    def divisor(rank: int) -> float:
        return math.sqrt(rank) if rank_stabilised else rank

    for size in dict.fromkeys(sizes[name] for name in pairs):
        group = {name: (A, B) for name, (A, B) in pairs.items() if sizes[name] == size}
        for name, (A, B) in converter.low_rank(group).items():
            rank, alpha = first.setdefault(name, size)
            B = B * (size[1] / alpha * divisor(rank) / divisor(size[0]))
            before = found.get(name, (A[:0], B[:, :0]))
            found[name] = torch.cat([before[0], A]), torch.cat([before[1], B], dim=1)
    converted_sizes = {}
    for name, (rank, alpha) in first.items():
        converted_rank = found[name][0].shape[0]
        converted_sizes[name] = converted_rank, alpha * (divisor(converted_rank) / divisor(rank))
    return found, converted_sizes
