"""Bottleneck adapters after sublayers.

Notation: D width of the output, m width of the bottleneck.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Adapter, AdapterLayer, Attention, Linear
from zoo_adapters.lora import Targets

Activation = Literal["relu", "gelu", "silu"]


class BottleneckLayer(AdapterLayer):
    """Two linear layers with a residual connection, after a module."""

    def __init__(
        self, like: Tensor, *, dim: int, width: int, activation: str, dropout: float
    ) -> None:
        super().__init__()
        self.activation = activation
        self.down = Linear(dim, width, device=like.device, dtype=like.dtype)
        self.up = Linear(width, dim, device=like.device, dtype=like.dtype)
        self.dropout = nn.Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.down.reset_parameters()
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def adapt_output(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        if isinstance(output, Tensor):
            return self.transform(output)
        return output._replace(context=self.transform(output.context))

    def transform(self, h: Tensor) -> Tensor:
        """Compute the output [B, T, D] of states [B, T, D]."""
        activate = getattr(F, self.activation)
        changed: Tensor = h + self.up(self.dropout(activate(self.down(h))))
        return changed

    def merge(self, module: nn.Module) -> None:
        raise ZooError("a bottleneck is not linear, so it cannot be merged")


class Bottleneck(Adapter):
    r"""Bottleneck adapter: a small feed-forward network with a residual connection after sublayers.

    .. math:: h' = h + W_{up}\, f(W_{down} h)

    The output projection is initialised with zeros, instead of values near zero as in the paper, so
    that an untrained adapter changes nothing exactly.

    Paper: Houlsby et al. 2019, section 2.1 and figure 2.

    Args:
        targets: patterns for the paths of attentions, feed-forward networks or linear layers; of
            modules inside of each other the outermost is adapted.
        width: width of the bottleneck, m.
        activation: f.
        dropout: dropout probability of the hidden layer.

    Shapes:
        those of the adapted module.
    """

    name: ClassVar[str] = "bottleneck"
    paper: ClassVar[str] = (
        "Houlsby et al. 2019, Parameter-Efficient Transfer Learning for NLP, arXiv:1902.00751"
    )
    test_params: ClassVar[dict[str, Any]] = {"targets": ["attention", "feed_forward"], "width": 3}

    def __init__(
        self,
        *,
        targets: Targets,
        width: Annotated[int, Field(ge=1, le=65_536)] = 64,
        activation: Activation = "gelu",
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__(targets=targets)
        self.width, self.activation, self.dropout = width, activation, dropout

    def supports(self, module: nn.Module) -> bool:
        return _output_dim(module) is not None

    def build_layer(self, module: nn.Module) -> AdapterLayer:
        dim = _output_dim(module)
        assert dim is not None
        return BottleneckLayer(
            next(module.parameters()),
            dim=dim,
            width=self.width,
            activation=self.activation,
            dropout=self.dropout,
        )

    def build_layers(self, modules: Mapping[str, nn.Module]) -> Iterator[tuple[str, AdapterLayer]]:
        outermost = ""
        for path in self.select("targets", self.targets, modules):
            if not outermost or not path.startswith(f"{outermost}."):
                outermost = path
                yield path, self.build_layer(modules[path])


def _output_dim(module: nn.Module) -> int | None:
    """Return the width of the states that a module returns, or None if it returns other values."""
    if isinstance(module, Attention):
        return module.output_dim if module.project != "none" else None
    if type(module) in (nn.Linear, Linear):
        return int(module.out_features)  # type: ignore[arg-type]
    down = getattr(module, "down", None)
    is_feed_forward = isinstance(down, nn.Linear) and hasattr(module, "up")
    return down.out_features if is_feed_forward and isinstance(down, nn.Linear) else None
