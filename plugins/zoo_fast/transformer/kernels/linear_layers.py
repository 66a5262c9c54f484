"""Linear layers of a decoding step, with the norm before and what follows them.

The library computes them where it is faster than the kernels. Notation: R rows (tokens of
hypotheses or of short prompts), D width of a head, H heads, N outputs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import triton
from torch import Tensor, nn

from zoo.plugin import Attention
from zoo_fast.device.triton_support import dependent_launch, shared_memory
from zoo_fast.transformer.cached_state import SLOTS, CachedState
from zoo_fast.transformer.kernels import decoding_linear_triton, heads_triton, norm_triton
from zoo_fast.transformer.kernels.tiles import (
    fit_stages,
    input_parts,
    linear_tiles,
    norm_first,
    uses_library,
)

ACTIVATIONS = {"relu": 1, "silu": 2, "gelu": 3, "gelu-tanh": 4}
"""Numbers of the activations in the kernels; 0 is none."""
_FUNCTIONS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: x,
    F.relu,
    F.silu,
    F.gelu,
    partial(F.gelu, approximate="tanh"),
)


class LayerInput(NamedTuple):
    """Input of a kernel: rows, the norm before its products, and where the norm's output goes."""

    x: Tensor
    norm: nn.Module | None
    normed: Tensor | None

    def arguments(self) -> dict[str, Any]:
        x, norm = self.x, self.norm
        bias = getattr(norm, "bias", None)
        weight = x if norm is None else norm.weight
        kind = 0 if norm is None else 1 if isinstance(norm, nn.LayerNorm) else 2
        return {
            "x": x,
            "norm_weight": weight,
            "norm_bias": weight if bias is None else bias,
            "normed": x if self.normed is None else self.normed,
            "M": x.shape[0],
            "K": x.shape[1],
            "x_m": x.stride(0),
            "eps": 0.0 if norm is None else norm.eps,
            "NORM": kind,
            "WRITE_NORMED": self.normed is not None,
        }


class PartialSums(NamedTuple):
    """Outputs of a linear layer that are still to be added.

    Attributes:
        parts: [P, R, N] products of parts of the inputs, in float32.
        bias: [N], if there is one.
        residual: [R, N].
    """

    parts: Tensor
    bias: Tensor | None
    residual: Tensor


def normed_input(x: Tensor, norm: nn.Module | None) -> LayerInput:
    """Return the input of a kernel after a norm, which the kernel computes unless it is slower."""
    if norm is None or not norm_first(len(x), x.shape[1], x.dtype):
        return LayerInput(x, norm, None)
    output = torch.empty_like(x)
    _norm_rows(x, norm, output)
    return LayerInput(output, None, None)


def add_and_norm(sums: PartialSums, norm: nn.Module) -> tuple[Tensor, Tensor]:
    """Return the norm of the outputs of a layer, and these outputs, [R, N] each."""
    normed, summed = torch.empty_like(sums.residual), torch.empty_like(sums.residual)
    _norm_rows(sums.residual, norm, normed, sums, summed)
    return normed, summed


def _norm_rows(
    x: Tensor,
    norm: nn.Module,
    output: Tensor,
    sums: PartialSums | None = None,
    summed: Tensor | None = None,
) -> None:
    """Compute the norm of the rows, to which parts are added first, if there are some."""
    arguments = LayerInput(x, norm, output).arguments()
    names = ("x", "norm_weight", "norm_bias", "M", "K", "x_m", "eps", "NORM")
    bias = None if sums is None else sums.bias
    norm_triton.norm_rows[(len(x),)](
        output=output,
        parts=x if sums is None else sums.parts,
        bias=x if bias is None else bias,
        summed=output if summed is None else summed,
        PARTS=0 if sums is None else len(sums.parts),
        HAS_BIAS=bias is not None,
        BK=triton.next_power_of_2(x.shape[1]),
        **{name: arguments[name] for name in names},
        **dependent_launch(x),
    )


def project_heads(
    inputs: LayerInput, state: CachedState, attention: Attention, index: int, *, interleaved: bool
) -> Tensor:
    """Compute the queries [R, H, D] of a layer, and store keys and values in its caches."""
    x, at = inputs.x, state.rows["at"]
    R, H, D = len(x), attention.heads, attention.head_dim
    rotary = "cos" in state.tables
    queries, keys = x.new_empty(R, H, D), state.history[f"{index}.keys"]
    options = {
        "queries": queries,
        "keys": keys,
        "values": state.history[f"{index}.values"],
        "at": at,
        "cos": state.tables["cos"] if rotary else x,
        "sin": state.tables["sin"] if rotary else x,
        "S": keys.shape[2],
        "TOKENS": tokens_per_cache(x, state),
        "H": H,
        "HKV": attention.kv_heads,
        "D": D,
        "ROTARY": rotary,
        "INTERLEAVED": interleaved,
        **dependent_launch(x),
    }
    width = (H + 2 * attention.kv_heads) * D
    layers = {name: getattr(attention, name) for name in ("query", "key", "value")}
    if uses_library(R, width, x.dtype, paired=True):
        projected = {name: linear(inputs, layer) for name, layer in layers.items()}
        heads_triton.place_heads[(R, H + 2 * attention.kv_heads)](
            **projected, M=R, BN=triton.next_power_of_2(D // 2), **options
        )
        return queries
    tiles = linear_tiles(R, width, x.shape[1], dtype=x.dtype, half_head=D // 2)
    tiles = fit_stages(tiles, 2, x.dtype, shared_memory(x.device))
    row_blocks = triton.cdiv(R, tiles["BM"])
    decoding_linear_triton.project_heads[(width // 2 // tiles["BN"] * row_blocks,)](
        **{name: layer.weight for name, layer in layers.items()},
        **{f"{name}_bias": _bias(layer) for name, layer in layers.items()},
        HAS_BIAS=attention.query.bias is not None,
        HAS_KEY_BIAS=attention.key.bias is not None,
        ROW_BLOCKS=row_blocks,
        **options,
        **inputs.arguments(),
        **tiles,
    )
    return queries


def tokens_per_cache(rows: Tensor, state: CachedState) -> int:
    """Return how many rows have the same cache: one, or the tokens of a prompt."""
    return len(rows) // len(state.rows[SLOTS])


def linear(
    inputs: LayerInput,
    layer: nn.Linear | Tensor,
    residual: Tensor | None = None,
    *,
    activation: int = 0,
    gate: nn.Linear | None = None,
) -> Tensor:
    """Compute residual + f(W norm(x) + b), or residual + f(G norm(x)) * (W norm(x)): [R, N]."""
    weight, bias = (layer, None) if isinstance(layer, Tensor) else (layer.weight, layer.bias)
    x, N = inputs.x, len(weight)
    if uses_library(len(x), N, x.dtype, paired=gate is not None):
        return _library_linear(inputs, layer, residual, activation=activation, gate=gate)
    output = x.new_empty(len(x), N)
    _multiply(
        inputs, weight, output, bias=bias, residual=residual, activation=activation, gate=gate
    )
    return output


def partial_linear(x: Tensor, layer: nn.Linear, residual: Tensor) -> PartialSums | None:
    """Compute a layer before a norm without the sums of its products; None if this is slower."""
    (R, K), N = x.shape, len(layer.weight)
    parts = input_parts(R, N, K, x.dtype)
    if parts == 1:
        return None
    output = x.new_empty(parts, R, N, dtype=torch.float32)
    _multiply(LayerInput(x, None, None), layer.weight, output, parts=parts)
    return PartialSums(output, layer.bias, residual)


def _multiply(
    inputs: LayerInput,
    weight: Tensor,
    output: Tensor,
    *,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    activation: int = 0,
    gate: nn.Linear | None = None,
    parts: int = 1,
) -> None:
    """Compute `linear` into the output [R, N], or its products into the output [parts, R, N]."""
    x, (N, K) = inputs.x, weight.shape
    paired = gate is not None
    tiles = linear_tiles(len(x), N, K // parts, dtype=x.dtype, paired=paired)
    tiles = fit_stages(tiles, 2 if paired else 1, x.dtype, shared_memory(x.device))
    row_blocks = triton.cdiv(len(x), tiles["BM"])
    decoding_linear_triton.linear[(triton.cdiv(N, tiles["BN"]) * row_blocks, parts)](
        weight=weight,
        bias=weight if bias is None else bias,
        gate=weight if gate is None else gate.weight,
        gate_bias=weight if gate is None else _bias(gate),
        residual=x if residual is None else residual,
        output=output,
        N=N,
        residual_m=N if residual is None else residual.stride(0),
        ACTIVATION=activation,
        GATED=paired,
        HAS_BIAS=bias is not None,
        HAS_RESIDUAL=residual is not None,
        ROW_BLOCKS=row_blocks,
        PARTS=parts,
        **inputs.arguments() | {"K": K // parts},
        **tiles,
        **dependent_launch(x),
    )


def _library_linear(
    inputs: LayerInput,
    layer: nn.Linear | Tensor,
    residual: Tensor | None,
    *,
    activation: int,
    gate: nn.Linear | None,
) -> Tensor:
    """Compute `linear` of rows that are normalised already."""
    assert inputs.norm is None
    x, activate = inputs.x, _FUNCTIONS[activation]
    weight, bias = (layer, None) if isinstance(layer, Tensor) else (layer.weight, layer.bias)
    output = F.linear(x, weight, bias)
    if gate is None:
        output = activate(output)
    else:
        output = activate(F.linear(x, gate.weight, gate.bias)) * output
    return output if residual is None else residual + output


def _bias(layer: nn.Linear) -> Tensor:
    """Return the bias, or the weight in its place if there is none."""
    return layer.weight if layer.bias is None else layer.bias
