"""Benchmark 'scaled-dot-attention'."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

import zoo
from zoo.plugin import Attention, Mask
from zoo_lab.bench.benchmark import Benchmark, Bound


class ScaledDotAttention(Benchmark):
    """Causal self-attention with grouped heads, forward and backward, compared with torch.

    All have the same projections of queries, keys, values and output, in bfloat16 on a GPU.

    Args:
        batch: number of sequences, B.
        length: number of positions, T.
        dim: width of the states, D.
        heads: number of heads, H.
        kv_heads: number of heads of keys and values.
    """

    name: ClassVar[str] = "scaled-dot-attention"
    target: ClassVar[float | None] = 0.9
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "length": (256, 1024, 4096, 16384),
        "batch": (1, 8, 64, 512),
    }
    test_params: ClassVar[Mapping[str, Any]] = {
        "batch": 2,
        "length": 5,
        "dim": 16,
        "heads": 4,
        "kv_heads": 2,
    }

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 4,
        length: Annotated[int, Field(ge=1)] = 2048,
        dim: Annotated[int, Field(ge=1)] = 1024,
        heads: Annotated[int, Field(ge=1)] = 16,
        kv_heads: Annotated[int, Field(ge=1)] = 4,
    ) -> None:
        self.batch, self.length = batch, length
        self.dim, self.heads, self.kv_heads = dim, heads, kv_heads

    def prepare(self, device: torch.device) -> None:
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.attention = self._build().to(device, dtype)
        self.states = self._random(self.batch, self.length, self.attention)
        self.grad = torch.randn_like(self.states)

    def _build(self) -> Attention:
        """Return the attention of a composed model with one block."""
        attention = {"scorer": "scaled-dot", "align": "soft", "project": "qkv"}
        decoder = {
            "type": "transformer",
            "layers": 1,
            "attention": {**attention, "heads": self.heads, "kv_heads": self.kv_heads},
            "feed_forward": {"hidden": 1},
        }
        source = {"type": "token", "vocab": 4, "dim": self.dim}
        model = {"type": "language-model", "embedding": source, "decoder": decoder}
        composed = zoo.compose({"zoo": 1, "name": self.name, "model": model})
        (found,) = (module for module in composed.modules() if isinstance(module, Attention))
        return zoo.accelerate(found)

    def _random(self, batch: int, length: int, attention: Attention) -> Tensor:
        weight = attention.out.weight
        return torch.randn(
            batch, length, self.dim, device=weight.device, dtype=weight.dtype, requires_grad=True
        )

    def check(self) -> None:
        """Compare context and gradients with the reference path, on other random states."""
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 2e-2)):
            attention = copy.deepcopy(self.attention).to(dtype)
            states = self._random(min(self.batch, 3), min(self.length, 257), attention)
            found = _gradients(_attend(attention, states), states, attention)
            with zoo.recording(attention):
                expected = _gradients(_attend(attention, states), states, attention)
            scale = max(value.norm() for value in expected.values())
            for name, value in expected.items():
                # The gradient of the key bias is 0 up to rounding.
                difference = (found[name] - value).norm() / (value.norm() + 0.1 * scale)
                assert difference < tolerance, f"{name} differs by {difference:.1e} in {dtype}"

    def run(self) -> Any:
        return self._backward(_attend(self.attention, self.states))

    def _backward(self, context: Tensor) -> Sequence[Tensor]:
        inputs = [self.states, *self.attention.parameters()]
        return torch.autograd.grad(context, inputs, self.grad)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        def torch_kernel() -> Callable[[], Any]:
            return lambda: self._backward(_torch_attention(self.attention, self.states))

        def compiled() -> Callable[[], Any]:
            function = torch.compile(_torch_attention)
            return lambda: self._backward(function(self.attention, self.states))

        peers = {"torch SDPA": torch_kernel, "torch SDPA, compiled": compiled}
        # On the CPU FlexAttention has no backward pass.
        return {**peers, "FlexAttention": self._flex} if self.states.is_cuda else peers

    def _flex(self) -> Callable[[], Any]:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        def is_visible(b: Tensor, h: Tensor, t: Tensor, s: Tensor) -> Tensor:
            return t >= s

        T, device = self.length, self.states.device
        mask = create_block_mask(is_visible, None, None, T, T, device=str(device))

        def attend(attention: Attention, states: Tensor) -> Tensor:
            q, k, v = _heads(attention, states)
            return _merge(attention, flex_attention(q, k, v, block_mask=mask, enable_gqa=True))

        function = torch.compile(attend)
        return lambda: self._backward(function(self.attention, self.states))

    def bound(self) -> Bound:
        """The projections, the causal half of scores and sums, and reading and writing states."""
        B, T, D = self.batch, self.length, self.dim
        projections = 2 * B * T * D * (2 * D + 2 * D * self.kv_heads // self.heads)
        scores = 2 * B * T * T * D
        operations = 3 * projections + 3.5 * scores
        return Bound(bytes=2 * 4 * B * T * D, operations=operations)

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "tokens"


def _attend(attention: Attention, states: Tensor) -> Tensor:
    context: Tensor = attention(states, states, Mask(causal=True)).context
    return context


def _torch_attention(attention: Attention, states: Tensor) -> Tensor:
    q, k, v = _heads(attention, states)
    context = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return _merge(attention, context)


def _heads(attention: Attention, states: Tensor) -> list[Tensor]:
    """Return queries, keys and values [B, heads, T, D / H]."""
    width = attention.head_dim
    maps = (attention.query, attention.key, attention.value)
    return [m(states).unflatten(-1, (-1, width)).transpose(1, 2) for m in maps]


def _merge(attention: Attention, context: Tensor) -> Tensor:
    merged: Tensor = attention.out(context.transpose(1, 2).flatten(2))
    return merged


def _gradients(context: Tensor, states: Tensor, attention: Attention) -> dict[str, Tensor]:
    """Return the context and the gradients of its weighted sum, in float32."""
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(context.shape, generator=generator).to(context)
    named = {"states": states, **dict(attention.named_parameters())}
    grads = torch.autograd.grad(context, list(named.values()), weights)
    found = {name: grad.float() for name, grad in zip(named, grads, strict=True)}
    return {"context": context.detach().float(), **found}
