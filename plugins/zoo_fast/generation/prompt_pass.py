"""The pass of the prompts through a decoder, captured together with the selection of the first
tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.generation.prompts import PromptBatch, vocab_size
from zoo.generation.search import DecodeState, find_invalid, init_search, update_search
from zoo.plugin import Decoder, DecodeRequest, Memory, SearchConfig, State
from zoo_fast.generation.captured_calls import Inspected, call_captured
from zoo_fast.generation.fixed_search import FixedSearch, RoomyPrompts, to_scalar
from zoo_fast.generation.kept_graphs import Function
from zoo_fast.generation.known_samplers import known_sampler
from zoo_fast.generation.lengths import pad_memory, source_length
from zoo_fast.generation.padded_prompts import PaddedPrompts, ProcessesPadded
from zoo_fast.generation.search_settings import SearchSettings
from zoo_fast.generation.selection import can_capture, select_next
from zoo_fast.generation.tensors_by_name import (
    STATE,
    flatten_memory,
    flatten_search,
    flatten_state,
    structure_of,
    unflatten_memory,
    unflatten_search,
    unflatten_state,
)


class Padding(NamedTuple):
    """How padded prompts are processed."""

    process: ProcessesPadded
    ragged: bool


@dataclass(frozen=True)
class PromptPass:
    """The pass of the prompts of a batch.

    Args:
        decoder: in evaluation mode.
        memory: the source.
        prompts: the prompts of the search.
        padded: the prompts for the decoder, if they differ.
        pads_memory: whether the source is padded to a length that graphs share.
        inspect: returns the result of `inspect_module` for the decoder.
    """

    decoder: Decoder
    memory: Memory
    prompts: PromptBatch
    padded: PaddedPrompts | None
    pads_memory: bool
    inspect: Callable[[], Inspected]

    def logits(self) -> tuple[Tensor, State]:
        """Return the logits [B, 1, V] of the next tokens, and the state of the decoder."""
        tensors, structure = self._call(_process)
        return tensors.pop("logits"), unflatten_state(tensors, structure)

    def first(
        self, request: DecodeRequest, settings: SearchSettings
    ) -> DecodeState | tuple[Tensor, State]:
        """Return the state after the selection of the first tokens.

        The hypotheses of an item are equal before it, so the state of the decoder is repeated after
        it, and not reordered. If the vocabulary of the prompts is not that of the logits, the
        prompts are to be validated first: the result is that of `logits`.
        """
        tensors, (structure, task) = self._call(_select_first, settings, self.prompts.total_length)
        state = unflatten_state(tensors, structure)
        if task is None:
            return tensors["logits"], state
        prompts = self.prompts
        task = replace(task, eos_ids=tensors["eos_ids"], max_length=prompts.max_length)
        search = unflatten_search(tensors, task, prompts.prefix.shape[1] + 1)
        state = state.repeat(request.sampler.width) if request.sampler.width > 1 else state
        return DecodeState(self.prompts, search, state, tensors["invalid"])

    def _call(
        self, function: Function, *arguments: SearchSettings | int
    ) -> tuple[dict[str, Tensor], Any]:
        prompts, padded, device = self.prompts, self.padded, self.prompts.prefix.device
        memory, S = self.memory, self.memory.mask.shape[1]
        if self.pads_memory and memory.tokens is not None and source_length(S) > S:
            memory = pad_memory(memory, source_length(S))
        given = flatten_memory(memory) | {"max_length": to_scalar(prompts.max_length, device)}
        if padded is None:
            given["prefix"] = prompts.prefix
        else:
            P, n = prompts.prefix.shape[1], padded.tokens.shape[1]
            given["prefix"] = F.pad(prompts.prefix, (0, n - P), value=prompts.pad)
            given |= {"padded": padded.tokens, "lengths": padded.lengths}
            given["cur_len"] = to_scalar(P, device)
        if prompts.suffix.shape[1]:
            given |= {"suffix": prompts.suffix, "forced_lengths": prompts.forced_lengths}
        return call_captured(
            self.decoder,
            function,
            given,
            vocab_size(self.decoder),  # a graph of fewer tokens is not started
            self.decoder.max_steps(prompts.prefix.shape[1], prompts.total_length - 1),
            None if padded is None else Padding(padded.process, padded.ragged),
            *arguments,
            inspect=self.inspect,
            borrow=STATE if prompts.steps == 1 else None,  # no step follows the only token
        )


def selects_first(request: DecodeRequest) -> bool:
    """Whether the first tokens can be selected in the pass of the prompts.

    Random samplers draw numbers from a generator that belongs to the call.
    """
    return can_capture(request) and not known_sampler(request.sampler).keeps_items


def _process(
    decoder: Decoder,
    inputs: Mapping[str, Tensor],
    vocab: int | None,
    steps: int,
    padding: Padding | None,
) -> tuple[dict[str, Tensor], State]:
    """Return the tensors of the state after the prompts, the logits [B, 1, V] of the next tokens,
    and the structure of the state.

    Args:
        vocab: the vocabulary size of the prompts, if it is known; each has its own graphs.
        steps: those of the state of the decoder.
    """
    state = decoder.start(unflatten_memory(inputs), steps=steps)
    if padding is None:
        logits, state = decoder.process_prompt(inputs["prefix"], state)
    else:
        tokens, lengths = inputs["padded"], inputs["lengths"]
        logits, state = padding.process.process_padded(
            decoder, tokens, lengths, state, ragged=padding.ragged
        )
    return flatten_state(state) | {"logits": logits}, structure_of(state)


def _select_first(
    decoder: Decoder,
    inputs: Mapping[str, Tensor],
    vocab: int | None,
    steps: int,
    padding: Padding | None,
    settings: SearchSettings,
    columns: int,
) -> tuple[dict[str, Tensor], tuple[State, SearchConfig | None]]:
    """Return the tensors of the decoder's state and of the search after the selection of the first
    tokens, and what else both consist of.

    Without a selection there are the logits, and there is no configuration of a search.
    """
    tensors, structure = _process(decoder, inputs, vocab, steps, padding)
    if vocab != tensors["logits"].shape[-1]:
        return tensors, (structure, None)
    logits, request = tensors.pop("logits"), settings.request
    prompts = _build_prompts(inputs, settings, columns)
    search = init_search(request.sampler, prompts, vocab)
    if "cur_len" in inputs:
        search = FixedSearch(**vars(search) | {"cur_len": inputs["cur_len"]})
    logits = logits.expand(-1, request.sampler.width, -1)
    selected = select_next(search, logits, request, prompts)
    tensors["invalid"], tensors["eos_ids"] = find_invalid(search, selected), search.task.eos_ids
    tensors |= flatten_search(update_search(search, selected))
    # The tensors of the configuration are those of the graph.
    task = replace(search.task, eos_ids=torch.empty(0, device="cpu"), max_length=0)
    return tensors, (structure, task)


def _build_prompts(
    inputs: Mapping[str, Tensor], settings: SearchSettings, columns: int
) -> PromptBatch:
    prefix = inputs["prefix"]
    B, P = prefix.shape
    if "suffix" in inputs:
        suffix, forced_lengths = inputs["suffix"], inputs["forced_lengths"]
    else:
        suffix = prefix[:, P:]
        forced_lengths = torch.zeros(B, dtype=torch.long, device=prefix.device)
    max_length: Any = settings.max_length
    if max_length is None:
        max_length = inputs["max_length"]
    prompts = PromptBatch(
        prefix,
        suffix,
        forced_lengths,
        settings.eos_ids,
        settings.pad,
        max_length,
        settings.selects_pad,
    )
    return RoomyPrompts.of(prompts, columns)
