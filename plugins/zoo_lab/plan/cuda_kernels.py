"""What CUDA kernels allocate and save for the backward pass, where CPU kernels differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

# fmt: off
_FLOAT32 = frozenset((
    "layer_norm", "group_norm", "softmax", "log_softmax", "logsumexp", "cross_entropy",
    "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "cosine_similarity",
    "cdist", "norm", "dist", "sum", "prod", "cumsum", "cumprod", "exp", "expm1", "log",
    "log1p", "log2", "log10", "pow", "__pow__", "rsqrt", "reciprocal", "softplus",
))
# fmt: on
"""Functions that CUDA autocast computes in float32; CPU autocast computes them in any dtype."""


_CUDNN_RESERVE = 6
"""Numbers that cuDNN saves for each output of a recurrent layer."""
_CUDNN_WORKSPACE = 8
"""Numbers that the backward pass of cuDNN allocates for each output of a recurrent layer."""


class CudaKernels(TorchFunctionMode):
    """Context manager that replaces functions by models of their CUDA kernels.

    The results have the right shapes and dtypes but no values, and as much is saved for the
    backward pass as by the kernels on CUDA: dropout saves a mask of bytes, attention saves its
    output and one number per query, and fused recurrent kernels save one buffer.
    """

    def __init__(self) -> None:
        super().__init__()
        self._packed_batch = 0
        self._kernels: dict[str, Callable[..., Any]] = {
            "dropout": _dropout,
            "scaled_dot_product_attention": _attention,
            "lstm_cell": _lstm_cell,
            "gru_cell": _gru_cell,
            "_pack_padded_sequence": self._pack,
            "_pad_packed_sequence": self._pad,
            "lstm": self._recurrent_layer,
            "gru": self._recurrent_layer,
            "rnn_tanh": self._recurrent_layer,
        }

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in self._kernels:
            return self._kernels[name](*args, **kwargs)
        if name in _FLOAT32 and torch.is_autocast_enabled("cpu"):
            args = tree_map_only(Tensor, _to_float32, args)
        return func(*args, **kwargs)

    def _pack(self, inputs: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
        """Pack a batch without padding: [B, S, D] -> [S * B, D], and the batch of each step."""
        steps_first = inputs.transpose(0, 1) if batch_first else inputs
        S, self._packed_batch = steps_first.shape[:2]
        return steps_first.flatten(0, 1).clone(), torch.zeros(S, dtype=torch.long, device="cpu")

    def _pad(
        self, data: Tensor, sizes: Tensor, batch_first: bool, value: float, total: int
    ) -> tuple[Tensor, Tensor]:
        B, S = self._packed_batch, sizes.shape[0]
        padded = data.view(S, B, -1).clone()
        return (padded.transpose(0, 1) if batch_first else padded), torch.zeros(
            B, dtype=torch.long, device="cpu"
        )

    def _recurrent_layer(self, data: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
        """One layer of cuDNN over packed data [S * B, D], or over a batch [B, S, D] or [S, B, D].

        The sizes of its buffers are measured with GRU and LSTM. In float32 it copies the weights
        into one buffer; autocast has copied them already.
        """
        if isinstance(arguments[1], list):
            initial, weights, *_, bidirectional, batch_first = arguments
            batch = data.shape[0 if batch_first else 1]
        else:
            _, initial, weights, *_, bidirectional = arguments
            batch = self._packed_batch
        states = 2 if isinstance(initial, tuple) else 1
        hidden = weights[1].shape[1]
        directions = 2 if bidirectional else 1
        shapes: list[tuple[int, ...]] = [(*data.shape[:-1], directions * hidden)]
        shapes += [(directions, batch, hidden)] * states
        elements = math.prod(shapes[0])
        inputs = _to_compute_dtype(data, *weights)
        reserve = _CUDNN_RESERVE * elements
        if inputs[1] is weights[0]:
            reserve += sum(weight.numel() for weight in weights)
        return _run_kernel(shapes, reserve, *inputs, workspace=_CUDNN_WORKSPACE * elements)


class _Kernel(torch.autograd.Function):
    """A kernel that saves its inputs, its first output and a buffer of ``reserve`` elements.

    The backward pass allocates ``workspace`` elements.
    """

    @staticmethod
    def forward(
        ctx: Any, shapes: Any, reserve: int, workspace: int, *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.workspace = workspace
        outputs = tuple(inputs[0].new_empty(shape) for shape in shapes)
        ctx.save_for_backward(*inputs, outputs[0], inputs[0].new_empty(reserve))
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        needed = ctx.needs_input_grad[3:]
        inputs = zip(ctx.saved_tensors, needed, strict=False)
        results = [torch.empty_like(x) if need else None for x, need in inputs]
        ctx.saved_tensors[0].new_empty(ctx.workspace)
        return None, None, None, *results


def _run_kernel(
    shapes: Sequence[tuple[int, ...]], reserve: int, *inputs: Tensor, workspace: int = 0
) -> tuple[Tensor, ...]:
    outputs: tuple[Tensor, ...] = _Kernel.apply(  # type: ignore[no-untyped-call]
        shapes, reserve, workspace, *inputs
    )
    return outputs


class _Attention(torch.autograd.Function):
    """Flash or memory-efficient attention: saves the output and the logsumexp of each query."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        B, H, T, _ = query.shape
        output = query.new_empty(B, T, H, value.shape[-1]).transpose(1, 2)
        logsumexp = query.new_empty(B, H, T, dtype=torch.float32)
        ctx.save_for_backward(query, key, value, bias, output, logsumexp)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        query, key, value, bias, _, logsumexp = ctx.saved_tensors
        delta = torch.empty_like(logsumexp)
        gradients = [_empty_heads(tensor) for tensor in (query, key, value)]
        del delta
        return *gradients, torch.empty_like(bias) if ctx.needs_input_grad[3] else None


def _empty_heads(tensor: Tensor) -> Tensor:
    """Return an empty tensor [B, H, T, D] that is stored as [B, T, H, D]."""
    return torch.empty_like(
        tensor.transpose(1, 2), memory_format=torch.contiguous_format
    ).transpose(1, 2)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    query, key, value = _to_compute_dtype(query, key, value)
    bias = attn_mask
    if attn_mask is not None and attn_mask.dtype != query.dtype:
        bias = torch.empty_like(attn_mask, dtype=query.dtype)
    output: Tensor = _Attention.apply(query, key, value, bias)  # type: ignore[no-untyped-call]
    return output


def _dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.native_dropout(input, p, True)[0] if training and p else input


def _lstm_cell(inputs: Tensor, state: Any, *weights: Tensor) -> tuple[Tensor, ...]:
    hidden, cell = state
    gates = _cell_gates(inputs, hidden, weights)
    shapes = [hidden.shape, cell.shape]
    return _run_kernel(shapes, gates[0].numel(), *gates, *_to_compute_dtype(cell))


def _gru_cell(x: Tensor, hidden: Tensor, *weights: Tensor) -> Tensor:
    gates = _cell_gates(x, hidden, weights)
    inputs = (*gates, *_to_compute_dtype(hidden))
    return _run_kernel([hidden.shape], 5 * hidden.numel(), *inputs)[0]


def _cell_gates(inputs: Tensor, hidden: Tensor, weights: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return F.linear(inputs, weights[0]), F.linear(hidden, weights[1])


def _to_compute_dtype(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Convert tensors to the dtype of autocast, if it is enabled."""
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype("cpu")) for tensor in tensors)


def _to_float32(tensor: Tensor) -> Tensor:
    half = tensor.dtype in (torch.bfloat16, torch.float16)
    return tensor.float() if half else tensor
