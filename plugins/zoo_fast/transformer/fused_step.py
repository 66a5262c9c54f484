"""Decoding steps of one token, and short prompts, in Triton kernels.

Notation: R rows (hypotheses), T tokens of a prompt, N positions, D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.acceleration import finish_preparation, plain_class
from zoo.interfaces.module_parts import each_part
from zoo.plugin import Acceleration, Attention, Call, Declined, Memory, State
from zoo_fast.active_dropout import active_p
from zoo_fast.attention.softmax_dropout import why_not_softmax
from zoo_fast.device.first_call import prepare_kernels
from zoo_fast.device.triton_support import why_not_triton_on
from zoo_fast.generation.padded_prompts import ProcessesPadded
from zoo_fast.transformer.block_dropout import why_not_block_dropout
from zoo_fast.transformer.cached_state import SLOTS, CachedState, RaggedState
from zoo_fast.transformer.matrices import lookup_table, output_matrix
from zoo_fast.transformer.positions import is_interleaved, position_tables, why_not_tables
from zoo_fast.transformer.residual import why_not_norm
from zoo_transformer.block import layer_list
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.scaled_dot import ScaledDot
from zoo_transformer.transformer_decoder import TransformerDecoder

SOURCE_BLOCK = 32
MAX_PROMPT_TOKENS = 64
"""Tokens of all prompts up to which the kernels of a step process them faster; 32 in float32."""
KERNEL_ACTIVATIONS = ("relu", "silu", "gelu", "gelu-tanh")
KERNELS = (
    "zoo_fast.generation.kernels.update",
    "zoo_fast.sampling.kernels.candidates",
    "zoo_fast.transformer.kernels.decode_step",
    "zoo_fast.transformer.kernels.embed",
    "zoo_fast.transformer.kernels.gated",
    "zoo_fast.transformer.kernels.residual_norm",
    "zoo_fast.transformer.kernels.rotary",
)
"""The modules with the kernels of prompts and steps of generation."""
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


class FusedDecoding(Acceleration, ProcessesPadded):
    """Decoding steps of one token in Triton kernels, with caches that are not reordered."""

    name: ClassVar[str] = "fused-decoding"
    serves: ClassVar[type[TransformerDecoder]] = TransformerDecoder

    def why_not(self, target: TransformerDecoder, device: torch.device) -> str | None:
        reason = why_not_triton_on(device.type)
        if reason is not None:
            return reason
        if target.training:
            return "the decoder is in training mode"
        if active_p(target.dropout):
            return "the dropout of the embeddings is in training mode"
        kinds = {
            (weight.dtype, weight.device)
            for part in each_part(target)
            for weight in part._parameters.values()
            if weight is not None
        }
        if len(kinds) > 1:
            return "the weights differ in dtype or device"
        if kinds.pop()[0] not in _DTYPES:
            return f"the dtype is not one of {', '.join(map(str, _DTYPES))}"
        return why_not_tables(target.position) or why_not_blocks(target) or _why_not_kernels(target)

    @classmethod
    def prepare(cls, device: torch.device) -> None:
        if why_not_triton_on(device.type) is None:
            prepare_kernels(device, KERNELS)

    def start(
        self, target: TransformerDecoder, memory: Memory, *, steps: int
    ) -> CachedState | Declined:
        target.check_steps(steps)
        finish_preparation()
        memory = _pad_source(memory)
        R, device = memory.mask.shape[0], memory.mask.device
        like = torch.empty(0, dtype=next(target.parameters()).dtype, device=device)
        history: dict[str, Tensor] = {}
        shared: dict[str, Tensor] = {"mask": memory.mask}
        for index, block in enumerate(layer_list(target.blocks)):
            attention = block.attention
            for name in ("keys", "values"):  # [R, Hkv, N, D]
                history[f"{index}.{name}"] = like.new_empty(
                    R, attention.kv_heads, steps, attention.head_dim
                )
            if target.memory_dim:
                source = block.cross.prepare(memory.states)
                shared |= {f"{index}.{name}": tensor for name, tensor in source.items()}
        torch._foreach_zero_(list(history.values()))  # one kernel instead of one for each
        rows = {
            "at": torch.zeros(R, dtype=torch.long, device=device),
            SLOTS: torch.zeros(R, steps, dtype=torch.int16, device=device),
        }
        tables = position_tables(target.position, steps, like)
        return CachedState(rows=rows, history=history, shared=shared, tables=tables)  # type: ignore[call-arg]

    def restart(
        self, target: TransformerDecoder, state: State, *, steps: int
    ) -> CachedState | Declined:
        if not isinstance(state, CachedState):
            return Declined("the state is not that of the kernels")
        target.check_steps(steps)
        history = {
            name: cache.new_zeros(*cache.shape[:2], steps, cache.shape[3])
            for name, cache in state.history.items()
        }
        slots = state.rows[SLOTS]
        own = torch.arange(len(slots), device=slots.device) % state.rows_per_source()
        rows = {
            "at": torch.zeros_like(state.rows["at"]),
            SLOTS: own.to(slots.dtype)[:, None].expand(-1, steps).contiguous(),
        }
        tables = position_tables(target.position, steps, next(iter(history.values())))
        return CachedState(rows=rows, history=history, shared=state.shared, tables=tables)  # type: ignore[call-arg]

    def step(
        self, target: TransformerDecoder, tokens: Tensor, state: State
    ) -> tuple[Tensor, State] | Declined:
        """Process one token [R, 1]; the kernels update the caches in place."""
        if tokens.shape[1] != 1:
            return Declined(f"there are {tokens.shape[1]} tokens")
        return self.process_prompt(target, tokens, state)

    def process_prompt(
        self, target: TransformerDecoder, tokens: Tensor, state: State
    ) -> tuple[Tensor, State] | Declined:
        """Process prompts [R, T]; each token is a row of the kernels, with its own position."""
        reason = _why_not_tokens(tokens, state)
        if reason is not None:
            return Declined(reason)
        return self._run(target, tokens, state, None)

    def process_padded(
        self,
        target: TransformerDecoder,
        tokens: Tensor,
        lengths: Tensor,
        state: State,
        *,
        ragged: bool,
    ) -> tuple[Tensor, State]:
        # Attention is causal, so that no token attends to the padding after it.
        after: State
        if _why_not_tokens(tokens, state) is None:
            logits, after = self._run(target, tokens, state, lengths)
        else:
            x, after = target.step_blocks(tokens, state, 0)
            last = (lengths - 1)[:, None, None].expand(-1, 1, x.shape[-1])
            logits = target.logits(x.gather(1, last))
        assert isinstance(after, CachedState)
        # A step writes keys and values at the position of the row, over those of the padding.
        after = replace(after, rows={**after.rows, "at": lengths.clone()})
        return logits, RaggedState.of(after) if ragged else after

    def _run(
        self, target: TransformerDecoder, tokens: Tensor, state: State, lengths: Tensor | None
    ) -> tuple[Tensor, CachedState]:
        """Process tokens [R, T] in the kernels; return the logits of the last ones.

        Args:
            lengths: [R], numbers of tokens that are not padding.
        """
        from zoo_fast.transformer.kernels.decode_step import run_blocks
        from zoo_fast.transformer.kernels.embed import embed
        from zoo_fast.transformer.kernels.tiles import max_output_rows

        assert isinstance(state, CachedState)
        R, T = tokens.shape
        before, added = state.rows["at"], state.tables.get("added")
        at = before
        if T > 1:
            at = (before[:, None] + torch.arange(T, device=before.device)).view(-1)
        lookup = lookup_table(target.embedding)
        if lookup is not None:
            x, next_at = embed(tokens.reshape(-1), at, *lookup, added)
        else:
            x, next_at = target.embedding(tokens).flatten(0, 1), at + 1
            x = x if added is None else x + added.index_select(0, at)
        if target.embedding_norm is not None:
            x = target.embedding_norm(x)
        last = None
        if lengths is not None:
            last = torch.arange(R, device=lengths.device) * T + lengths - 1
        matrix = output_matrix(target.output) if max_output_rows(x.shape[-1]) >= R else None
        x = run_blocks(
            x,
            replace(state, rows={**state.rows, "at": at}),
            layer_list(target.blocks),
            interleaved=is_interleaved(target.position),
            final_norm=target.final_norm,
            matrix=matrix,
            last=last,
        )
        logits: Tensor = target.output(x) if matrix is None else x
        next_at = next_at if T == 1 else before + T
        return logits[:, None], replace(state, rows={**state.rows, "at": next_at})

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_fast.transformer.example_calls import decoder_calls

        for decoder, memory, tokens in decoder_calls(dtype):
            yield Call(decoder, (memory,), {"steps": 3}, method="start")
            with torch.no_grad():
                state = self.start(decoder, memory, steps=3)
            yield Call(decoder, (tokens[:, :1], state), method="step")
            with torch.no_grad():
                state = self.start(decoder, memory, steps=3)
            yield Call(decoder, (tokens[:, :1], state), method="process_prompt")

    def tensors(self, output: Any) -> list[Tensor]:
        """Return the logits of a step, or the caches of a new state."""
        if isinstance(output, State):
            return [tensor for _, tensor in sorted(output.per_hypothesis.items())]
        logits, state = output
        return [logits, *self.tensors(state)]


def _why_not_tokens(tokens: Tensor, state: State) -> str | None:
    """Return the reason why the kernels do not process tokens [R, T], or None if they do."""
    if not isinstance(state, CachedState):
        return "the state is not that of the kernels"
    if not tokens.numel():
        return "there are no tokens"
    is_float32 = next(iter(state.history.values())).dtype == torch.float32
    limit, (_, T) = 32 if is_float32 else MAX_PROMPT_TOKENS, tokens.shape
    if T > 1 and tokens.numel() > limit:
        return f"there are {tokens.numel()} tokens"
    if T > 1 and state.rows_per_source() > 1:
        return "there are several hypotheses of a source"
    return None


def why_not_blocks(decoder: TransformerDecoder) -> str | None:
    """Return the reason why a step does not support the parts of a block, or None if it does."""
    for block in layer_list(decoder.blocks):
        if block.attention_scale is not None:
            return "the sublayers have a layer scale"
        if plain_class(block.feed_forward) is not FeedForward:
            return f"{type(block.feed_forward).__name__} is not known"
        reason = why_not_block_dropout(block)
        if reason is not None:
            return reason
        for attention in (block.attention, *((block.cross,) if block.memory_dim else ())):
            reason = _why_not_attention(attention)
            if reason is not None:
                return reason
    return None


def _why_not_kernels(decoder: TransformerDecoder) -> str | None:
    """Return why the kernels do not compute the blocks of a step, or None if they do."""
    for block in layer_list(decoder.blocks):
        if block.place not in ("pre", "post"):
            return f"the place of the norms is '{block.place}', not 'pre' or 'post'"
        norms = [block.attention_norm, block.feed_forward_norm]
        norms += [block.cross_norm] if block.memory_dim else []
        for norm in filter(None, norms):
            reason = why_not_norm(norm)
            if reason is not None:
                return reason
        if block.sublayers != "sequential":
            return f"the sublayers are '{block.sublayers}', not 'sequential'"
        if block.feed_forward.activation not in KERNEL_ACTIVATIONS:
            return f"the kernels do not compute the activation '{block.feed_forward.activation}'"
        if block.window is not None:
            return "a layer has a window"
        if block.no_position or block.position is not None:
            return "the layers differ in their positions"
        for attention in (block.attention, *((block.cross,) if block.memory_dim else ())):
            if attention.query_norm is not None:
                return "queries and keys have a norm"
            if attention.head_dim % 32:
                return f"the width of a head is {attention.head_dim}, not a multiple of 32"
    return None


def _why_not_attention(attention: Attention) -> str | None:
    scorer = attention.scorers.first
    if plain_class(attention) is not Attention:
        return f"{type(attention).__name__} is not known"
    if plain_class(scorer) is not ScaledDot:
        return f"scorer '{scorer.name}' is not scaled-dot"
    if scorer.cap is not None:
        return "the scores have a cap"
    reason = why_not_softmax(attention.align)
    if reason is not None:
        return reason
    if attention.score_bias is not None:
        return "the attention has a bias that depends on its queries or keys"
    if attention.project != "qkv" or attention.merge != "concat":
        return "the attention does not project or concatenate its heads"
    return None


def _pad_source(memory: Memory) -> Memory:
    """Return the memory with a length that is a multiple of SOURCE_BLOCK.

    Captured steps can then be used for sources of similar length.
    """
    extra = -memory.mask.shape[1] % SOURCE_BLOCK
    states, mask = F.pad(memory.states, (0, 0, 0, extra)), F.pad(memory.mask, (0, extra))
    return replace(memory, states=states, mask=mask)
