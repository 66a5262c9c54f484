"""Decoding steps of one token in Triton kernels: the conditions, and the state they use.

Notation: R rows (hypotheses), N positions, D width.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.plugin import Attention, Memory, Position, State, has_hooks, why_not_triton
from zoo_transformer.block import Block
from zoo_transformer.scaled_dot import ScaledDot

SLOTS = "slots"
"""Name of the index of caches in a state: the row of the source at each position, [R, N]."""
SOURCE_BLOCK = 32


def why_not_fused_step(
    decoder: nn.Module, blocks: list[Block], position: Position | None
) -> str | None:
    """Return the reason why the kernels cannot compute the steps of a decoder, None if they can."""
    weights = list(decoder.parameters())
    reason = why_not_triton(*weights)
    if reason is not None:
        return reason
    if torch.is_grad_enabled():
        return "gradients are enabled"
    if torch.is_autocast_enabled(weights[0].device.type):
        return "autocast is enabled"
    if len({(weight.dtype, weight.device) for weight in weights}) > 1:
        return "the weights differ in dtype or device"
    if decoder.training:
        return "the decoder is in training mode"
    if has_hooks(decoder):
        return "the decoder has module hooks"
    if position is not None:
        if position.has_bias:
            return f"position '{position.name}' adds a bias to the scores"
        if position.is_rotary and type(position).rotation is Position.rotation:
            return f"position '{position.name}' has no table of angles"
        if type(position).add is not Position.add and type(position).added is Position.added:
            return f"position '{position.name}' has no table of vectors"
    return why_not_attentions(blocks)


def why_not_attentions(blocks: list[Block]) -> str | None:
    """Return the reason why an attention of the blocks is not multi-head scaled-dot attention."""
    for attention in _attentions(blocks):
        reason = _why_not_attention(attention)
        if reason is not None:
            return reason
    return None


def _attentions(blocks: list[Block]) -> Iterator[Attention]:
    for block in blocks:
        yield block.attention
        if block.memory_dim:
            yield block.cross


def _why_not_attention(attention: Attention) -> str | None:
    scorer = attention.scorers.first
    if type(scorer) is not ScaledDot:
        return f"scorer '{scorer.name}' is not scaled-dot"
    if not attention.align.is_softmax:
        return f"alignment '{attention.align.name}' is not a softmax"
    if attention.recorders:
        return "the attention weights are recorded"
    if attention.project != "qkv" or attention.merge != "concat":
        return "the attention does not project or concatenate its heads"
    if attention.head_dim % 32:
        return f"the width of a head is {attention.head_dim}, not a multiple of 32"
    return None


def start_fused(
    blocks: list[Block],
    position: Position | None,
    memory: Memory,
    *,
    steps: int,
    dtype: torch.dtype,
) -> State:
    """Return the state before the first token."""
    memory = _pad_source(memory)
    R, device = memory.mask.shape[0], memory.mask.device
    like = torch.empty(0, dtype=dtype, device=device)
    history: dict[str, Tensor] = {}
    shared: dict[str, Tensor] = {"mask": memory.mask}
    for index, block in enumerate(blocks):
        attention = block.attention
        for name in ("keys", "values"):  # [R, Hkv, N, D]
            history[f"{index}.{name}"] = like.new_zeros(
                R, attention.kv_heads, steps, attention.head_dim
            )
        if block.memory_dim:
            source = block.cross.prepare(memory.states)
            shared |= {f"{index}.{name}": tensor for name, tensor in source.items()}
    tables: dict[str, Tensor] = {}
    if position is not None:
        added, rotation = position.added(steps, like), position.rotation(steps, like)
        if added is not None:
            tables["added"] = added
        if rotation is not None:
            tables["cos"], tables["sin"] = rotation
    per_hypothesis = {
        "at": torch.zeros(R, dtype=torch.long, device=device),
        SLOTS: torch.zeros(R, steps, dtype=torch.int16, device=device),
    }
    return State(per_hypothesis, {}, history, shared, tables)


def _pad_source(memory: Memory) -> Memory:
    """Return the memory with a length that is a multiple of SOURCE_BLOCK.

    Recorded steps can then be used for sources of similar length.
    """
    extra = -memory.mask.shape[1] % SOURCE_BLOCK
    states, mask = F.pad(memory.states, (0, 0, 0, extra)), F.pad(memory.mask, (0, extra))
    return replace(memory, states=states, mask=mask)


def is_fused(state: State) -> bool:
    """Whether a state is that of `start_fused`."""
    return SLOTS in state.per_hypothesis


def to_reference(state: State) -> State:
    """Return the state that the reference step takes: caches in the order of the hypotheses."""
    slots = state.per_hypothesis[SLOTS].long()  # [R, N]
    rows, sources = slots.shape[0], len(state.shared["mask"])
    W = rows // sources
    if W == 1:  # the caches are in order
        return State({"at": state.per_hypothesis["at"], **state.history}, state.shared)
    first = torch.arange(rows, device=slots.device) // W * W
    source_rows, at = first[:, None] + slots, torch.arange(slots.shape[1], device=slots.device)
    per_hypothesis = {"at": state.per_hypothesis["at"]}
    for name, cache in state.history.items():
        # [R, N, Hkv, D] -> [R, Hkv, N, D]
        per_hypothesis[name] = cache[source_rows, :, at].transpose(1, 2).contiguous()
    per_source = {name: tensor.repeat_interleave(W, dim=0) for name, tensor in state.shared.items()}
    return State(per_hypothesis, per_source)


def from_reference(updated: State, before: State) -> State:
    """Return the state of `start_fused` after a reference step."""
    slots = before.per_hypothesis[SLOTS]
    rows = slots.shape[0]
    W = rows // len(before.shared["mask"])
    own = (torch.arange(rows, device=slots.device) % W).to(slots.dtype)
    caches = {name: updated.per_hypothesis[name] for name in before.history}
    per_hypothesis = {
        "at": updated.per_hypothesis["at"],
        SLOTS: own[:, None].expand_as(slots).contiguous(),
    }
    return replace(before, per_hypothesis=per_hypothesis, history=caches)
