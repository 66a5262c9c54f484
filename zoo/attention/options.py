"""Further parameters of an attention."""

from dataclasses import dataclass
from typing import Literal

from zoo.attention.query_key_norm import QueryKeyNorm
from zoo.registry.blueprint import Blueprint


@dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """Parameters of an attention that most models do not set; `Attention` documents them."""

    bias: bool | Literal["qkv", "qvo", "out"] = True
    norm: Blueprint[QueryKeyNorm] | None = None

    @property
    def biased(self) -> str:
        """The projections with a bias: a part of 'qkvo', the initials of query to output."""
        if isinstance(self.bias, bool):
            return "qkvo" if self.bias else ""
        return "o" if self.bias == "out" else self.bias


DEFAULT_OPTIONS = AttentionOptions()
