"""Joint projections of queries, keys and values in training on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from zoo.attention.heads import split_heads
from zoo.plugin import Acceleration, Attention, Call, Declined, Position, reference
from zoo_fast.attention.joint_linear import joint_linear, replaces_calls


class JointProjections(Acceleration):
    """Projects queries, keys and values in one product, also in the backward pass."""

    name: ClassVar[str] = "joint-projections"
    serves: ClassVar[type[Attention]] = Attention
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def why_not(self, target: Attention, device: torch.device) -> str | None:
        if target.project == "none":
            return "the attention has no projections"
        if device.type != "cuda":
            return f"the device is '{device.type}', not 'cuda'"
        return None if torch.is_grad_enabled() else "gradients are disabled"

    def project_inputs(
        self,
        target: Attention,
        query: Tensor,
        memory: Tensor | Mapping[str, Tensor],
        *,
        position: Position | None = None,
        offset: int | Tensor = 0,
    ) -> tuple[Tensor, Mapping[str, Tensor]] | Declined:
        joint = joint_projections(target, query, memory, position=position, offset=offset)
        return Declined("the layers have to be called") if joint is None else joint

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_fast.attention.example_calls import attention_calls
        from zoo_transformer.scaled_dot import ScaledDot

        for call in attention_calls(ScaledDot, dtype):
            yield Call(call.target, call.arguments[:2], method="project_inputs")


def project_inputs(
    target: Attention,
    query: Tensor,
    memory: Tensor | Mapping[str, Tensor],
    *,
    position: Position | None,
    offset: int | Tensor,
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Compute `Attention.project_inputs`, with joint projections where they are faster."""
    joint = joint_projections(target, query, memory, position=position, offset=offset)
    if joint is not None:
        return joint
    plain = reference(target, "project_inputs")
    result: tuple[Tensor, Mapping[str, Tensor]]
    result = plain(query, memory, position=position, offset=offset)
    return result


def joint_projections(
    target: Attention,
    query: Tensor,
    memory: Tensor | Mapping[str, Tensor],
    *,
    position: Position | None,
    offset: int | Tensor,
) -> tuple[Tensor, Mapping[str, Tensor]] | None:
    """Compute `Attention.project_inputs` with products of joined weights, or return None."""
    if target.project == "none" or not replaces_calls(query, [target.query, target.key]):
        return None
    if memory is query and target.project == "qkv" and replaces_calls(query, [target.value]):
        queries, key, value = joint_linear(query, (target.query, target.key, target.value))
        keys, values = (split_heads(part, target.kv_heads) for part in (key, value))
        prepared: Mapping[str, Tensor] = target.prepare_heads(keys, values, position, offset)
    else:
        (queries,) = joint_linear(query, (target.query,))
        if isinstance(memory, Tensor):
            prepared = _prepare(target, memory, position, offset)
        else:
            prepared = memory
    return target.prepare_queries(split_heads(queries, target.heads), position, offset), prepared


def _prepare(
    target: Attention, memory: Tensor, position: Position | None, offset: int | Tensor
) -> Mapping[str, Tensor]:
    if target.project != "qkv":
        return target.prepare(memory, position=position, offset=offset)
    parts = joint_linear(memory, (target.key, target.value))
    keys, values = (split_heads(part, target.kv_heads) for part in parts)
    return target.prepare_heads(keys, values, position, offset)
