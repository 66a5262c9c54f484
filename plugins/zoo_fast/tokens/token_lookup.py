"""Lookup of token embeddings, with a kernel for the gradient of the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from zoo.plugin import Acceleration, Call
from zoo_fast.device.triton_support import why_not_triton_on
from zoo_tokens.token import Token


class TokenLookup(Acceleration):
    """Computes the gradient of the table in Triton kernels, without sorting the tokens."""

    name: ClassVar[str] = "token-lookup"
    serves: ClassVar[type[Any]] = Token
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.bfloat16)
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def why_not(self, target: Token, device: torch.device) -> str | None:
        table = target.table.weight
        if not (torch.is_grad_enabled() and table.requires_grad):
            return "the table is not trained"
        if type(table) not in (nn.Parameter, Tensor):
            return f"the table is a {type(table).__name__}"
        return why_not_triton_on(device.type, table.dtype)

    def lookup(self, target: Token, tokens: Tensor) -> Tensor:
        from zoo_fast.tokens.kernels.lookup import lookup

        return lookup(tokens, target.table.weight, target.table.padding_idx)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        options: tuple[dict[str, Any], ...] = (
            {"padding": 0},
            {"padding": None},
            {"padding": 0, "train_padding": True},
        )
        sizes = ((7, (3, 15)), (100, (2, 5)), (2, (1, 1)))
        for (vocab, shape), settings in zip(sizes, options, strict=True):
            token = Token(vocab=vocab, dim=6, **settings).to(dtype)
            yield Call(
                token, (torch.arange(shape[0] * shape[1]).view(shape) % vocab,), {}, "lookup"
            )
