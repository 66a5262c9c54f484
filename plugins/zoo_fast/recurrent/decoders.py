"""Accelerations of the recurrent decoders: all tokens of a call at once.

Notation: B batch, n tokens, E width of the inputs, H hidden width.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, Attention, Blueprint, Call, Declined, Mask, Memory
from zoo_bahdanau.additive import Additive
from zoo_fast.recurrent.attention_sequence import run_sequence, why_not_attention_sequence
from zoo_fast.recurrent.concatenation import concatenate
from zoo_fast.recurrent.layer import run_stack
from zoo_luong.general import General
from zoo_recurrent.attentive_rnn import AttentiveRNN
from zoo_recurrent.luong_rnn import LuongRNN
from zoo_recurrent.plain_rnn import PlainRNN
from zoo_recurrent.pointer_rnn import PointerRNN
from zoo_recurrent.recurrent_decoder import (
    ATTENTION_PREFIX,
    AttentionDecoder,
    StepOutput,
    TensorMapping,
)


class SequenceDecoding(Acceleration):
    """Decodes all tokens of a call at once; the operator is differentiable once."""

    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True
    traceable: ClassVar[bool] = True
    params: ClassVar[tuple[dict[str, Any], ...]] = ({"cell": "gru"}, {"cell": "lstm"})
    """Parameters of the decoders of `cases`."""

    @abstractmethod
    def decode_all(
        self, target: Any, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        """Compute the features [B, n, F] of inputs x [B, n, E], and the updated state."""

    def decode_tokens(
        self, target: Any, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput | Declined:
        if x.shape[1] < 2:
            return Declined("there is one token")
        if state["h"].dtype == torch.float64 and not torch.compiler.is_compiling():
            return Declined("the dtype is torch.float64")
        if "keys" in per_source and len(per_source["keys"]) != len(state["h"]):
            return Declined("hypotheses share their keys")
        return self.decode_all(target, x, state, per_source)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo_alignment.soft import Soft
        from zoo_tokens.token import Token

        device, generator = torch.empty(0).device, torch.Generator("cpu").manual_seed(0)
        for params in self.params:
            given = {name: value for name, value in params.items() if name != "scorer"}
            if issubclass(self.serves, AttentionDecoder):
                scorer = Blueprint.of(params.get("scorer", Additive))
                align = Blueprint.of(Soft)
                given["attention"] = Blueprint.of(Attention, scorer=scorer, align=align)
            decoder = Blueprint.of(self.serves, hidden=6, **given).build(
                embedding=Token(vocab=9, dim=3), memory_dim=6, summary_dim=5, carry={}
            )
            decoder.to(device, dtype)
            for lengths, n in (((4, 1, 2, 0), 5), ((1,), 2)):
                shape = (len(lengths), max(lengths))
                states, summary, x = (
                    torch.randn(size, generator=generator, device="cpu").to(device, dtype)
                    for size in ((*shape, 6), (shape[0], 5), (shape[0], n, 3))
                )
                steps = torch.arange(shape[1], device=device)
                mask = steps < torch.tensor(lengths, device=device)[:, None]
                memory = Memory(states, mask, summary, tokens=mask.long())
                state = decoder.start(memory, steps=n)
                tensors = (state.per_hypothesis, state.per_source)
                detached = ({k: v.detach() for k, v in each.items()} for each in tensors)
                yield Call(decoder, (x, *detached), method="decode_tokens")


class PlainSequence(SequenceDecoding):
    """The decoder plain-rnn in kernels over all tokens, layer by layer."""

    name: ClassVar[str] = "plain-rnn-sequence"
    serves: ClassVar[type[PlainRNN]] = PlainRNN

    def decode_all(
        self, target: PlainRNN, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        features, last = run_stack(target.cells, x, state)
        return features, {**state, **last}


class AttentiveSequence(SequenceDecoding):
    """The decoder attentive-rnn as one operator over all tokens."""

    name: ClassVar[str] = "attentive-rnn-sequence"
    serves: ClassVar[type[AttentiveRNN]] = AttentiveRNN
    params: ClassVar[tuple[dict[str, Any], ...]] = (
        {"cell": "gru"},
        {"cell": "gru-cho", "scorer": General},
        {"cell": "lstm", "output": "linear"},
    )

    def why_not(self, target: AttentiveRNN, device: torch.device) -> str | None:
        return why_not_attention_sequence(target.cells, target.attention)

    def decode_all(
        self, target: AttentiveRNN, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        (cell,) = target.cells.layers()
        result = run_sequence(cell, x, state, target.attention, per_source)
        contexts = result.weights @ per_source["values"][:, 0]  # [B, n, C]
        features = concatenate(*target.feature_parts(result.h[:, 1:], x, contexts))
        return features, {**state, **result.last()}


class LuongSequence(SequenceDecoding):
    """The decoder luong-rnn over all tokens: its states first, then the attention."""

    name: ClassVar[str] = "luong-rnn-sequence"
    serves: ClassVar[type[LuongRNN]] = LuongRNN
    params: ClassVar[tuple[dict[str, Any], ...]] = (
        {"cell": "lstm"},
        {"cell": "gru", "scorer": General, "input_feeding": False, "layers": 2},
    )

    def why_not(self, target: LuongRNN, device: torch.device) -> str | None:
        attention = target.attention
        if attention.sequential or attention.stochastic_part is not None:
            return "the attention depends on previous queries, or samples"
        if not target.input_feeding:
            return None
        if target.output == "linear":
            return "the cell reads contexts of output 'linear'"
        return why_not_attention_sequence(target.cells, attention)

    def decode_all(
        self, target: LuongRNN, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        if target.input_feeding:
            (cell,) = target.cells.layers()
            combine = target.combine.weight
            result = run_sequence(
                cell, x, state, target.attention, per_source, state["fed"], combine
            )
            s, last = result.h[:, 1:], result.last()
        else:
            s, last = run_stack(target.cells, x, state)
        contexts, updated = _attend_all(target.attention, s, {**state, **last}, per_source)
        attentional = target.attentional_state(contexts, s)
        if target.input_feeding:
            updated["fed"] = attentional[:, -1]
        return attentional, updated


class PointerSequence(SequenceDecoding):
    """The decoder pointer-rnn as one operator over all tokens."""

    name: ClassVar[str] = "pointer-rnn-sequence"
    serves: ClassVar[type[PointerRNN]] = PointerRNN

    def why_not(self, target: PointerRNN, device: torch.device) -> str | None:
        return why_not_attention_sequence(target.cells, target.attention)

    def decode_all(
        self, target: PointerRNN, x: Tensor, state: TensorMapping, per_source: TensorMapping
    ) -> StepOutput:
        (cell,) = target.cells.layers()
        result = run_sequence(cell, x, state, target.attention, per_source, state["context"])
        s, mask = result.h[:, 1:], Mask(keys=per_source["mask"])
        contexts, _, weights = target.attention(s, per_source, mask, return_weights=True)
        updated = {**state, **result.last(), "context": contexts[:, -1]}
        return torch.cat([s, contexts, x, weights[:, 0]], dim=-1), updated


def _attend_all(
    attention: Attention, query: Tensor, state: TensorMapping, per_source: TensorMapping
) -> StepOutput:
    """Compute contexts [B, n, C] and the updated state of queries [B, n, H] at once."""
    mask, updated = Mask(keys=per_source["mask"]), dict(state)
    offset = updated.get(ATTENTION_PREFIX + "step", 0)
    if isinstance(offset, Tensor):
        updated[ATTENTION_PREFIX + "step"] = offset + query.shape[1]
    return attention(query, per_source, mask, offset=offset).context, updated
