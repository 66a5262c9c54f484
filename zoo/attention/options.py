"""Further parameters of an attention."""

from dataclasses import dataclass
from typing import Literal

from zoo.attention.query_key_norm import QueryKeyNorm
from zoo.registry.blueprint import Blueprint


@dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """Parameters of an attention that most models do not set; `Attention` documents them."""

    bias: bool | Literal["qkv", "qvo"] = True
    norm: Blueprint[QueryKeyNorm] | None = None


DEFAULT_OPTIONS = AttentionOptions()
