"""Decoding steps on tensors of fixed address, captured as CUDA graphs."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from zoo.generation.search import DecodeState, find_invalid, parent_rows, update, update_search
from zoo.plugin import Decoder, DecodeRequest, SearchState, State
from zoo_fast.device.cuda_graph import GraphedFunction
from zoo_fast.device.triton_support import why_not_triton
from zoo_fast.generation.fixed_search import FixedPrompts, FixedSearch, to_scalar
from zoo_fast.generation.known_samplers import is_known
from zoo_fast.generation.selection import can_capture, select_next
from zoo_fast.generation.state_items import reordered_table
from zoo_fast.generation.tensor_copies import Pair, copy_into, copy_small_into
from zoo_fast.generation.tensors_by_name import (
    find_change,
    flatten_sampler,
    flatten_search,
    flatten_state,
    structure_of,
    unflatten_search,
    unflatten_state,
)


class CapturedSteps:
    """The steps of one decoder after the first one, for inputs of one shape.

    The state of the decoder and of the search are kept in tensors of fixed address, which a step
    updates. The first steps run as they are; then the step is captured as a CUDA graph, if the
    device is a GPU. With filters that need the number of tokens, only the step of the decoder is
    captured. If a step of the decoder changes more of its state than values, ordinary steps follow.

    Args:
        decoder: not kept alive by this object.
        request: the sampler and the filters, which must not change; its generator is replaced by a
            copy.
        first: the state after the first step, whose shapes are used.

    Attributes:
        bytes: the memory of the fixed tensors.
    """

    def __init__(self, decoder: Decoder, request: DecodeRequest, first: DecodeState) -> None:
        search = first.search
        device = search.tokens.device
        self._decoder = weakref.ref(decoder)
        generator = None if request.generator is None else torch.Generator(device)
        self._request = replace(request, generator=generator)
        self._selects = can_capture(request)
        self._prompts = first.prompts
        self._task, self._is_known = search.task, is_known(request.sampler)
        self._structure = structure_of(first.state)
        with torch.inference_mode(False):
            self._tensors = {
                name: torch.empty_like(tensor, memory_format=torch.contiguous_format)
                for name, tensor in flatten(first).items()
            }
        self.bytes = sum(tensor.nbytes for tensor in self._tensors.values())
        self._lock = threading.Lock()
        self._change: str | None = None
        self._changed: State | None = None
        generators = () if generator is None else (generator,)
        self._graph = (
            GraphedFunction(self._run, generators=generators) if device.type == "cuda" else None
        )

    @property
    def generator(self) -> torch.Generator | None:
        """The generator whose random numbers the steps draw, None without one."""
        return self._request.generator

    @property
    def reason(self) -> str | None:
        """The reason why the step could not be captured, None if it was or was not yet."""
        if self._graph is None:
            return "the device is not a GPU"
        return self._change or self._graph.reason

    @property
    def is_running(self) -> bool:
        """Whether a call uses the tensors."""
        return self._lock.locked()

    def run(self, request: DecodeRequest, state: DecodeState) -> Iterator[DecodeState]:
        """Yield the state after each further step; nothing if another call uses the tensors, or if
        the state of the decoder cannot be kept in them.

        The tensors of the state are overwritten by the next step. The generator of the request
        continues from the last step.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._change or find_change(self._structure, self._tensors, state.state):
                return
            self._write(flatten(state) | {"invalid": state.invalid})
            with self._continue_generator(request.generator):
                yield from self._run_steps(state)
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _continue_generator(self, generator: torch.Generator | None) -> Iterator[None]:
        """Use the state of a generator inside the block, and set it to the last one on exit."""
        own = self._request.generator
        if own is None or generator is None:
            yield
            return
        own.set_state(generator.get_state())
        try:
            yield
        finally:
            generator.set_state(own.get_state())

    def _run_steps(self, state: DecodeState) -> Iterator[DecodeState]:
        prompts, length = state.prompts, state.search.cur_len
        fixed = replace(self._search(length), task=state.search.task)
        decoder_state = self._state()
        while True:
            logits = self._run({}) if self._graph is None else self._graph({})
            changed, self._changed = self._changed, None
            if changed is not None:
                break
            if not self._selects:
                self._select(logits, self._state(), length)
            length += 1
            search = replace(fixed, cur_len=length)
            yield DecodeState(prompts, search, decoder_state, self._tensors["invalid"])
        search = replace(fixed, cur_len=length)
        before = DecodeState(prompts, search, decoder_state, self._tensors["invalid"])
        yield from self._run_ordinary(before, logits, changed)

    def _run_ordinary(
        self, before: DecodeState, logits: Tensor, state: State
    ) -> Iterator[DecodeState]:
        """Yield the states of ordinary steps, given the decoder's results of the first one."""
        B, W = before.search.scores.shape
        while True:
            logits = logits.view(B, W, before.search.task.vocab)
            selected = select_next(before.search, logits, self._request, before.prompts)
            before = update(before, selected, state)
            yield before
            last_tokens = before.search.last_tokens().view(-1, 1)
            logits, state = self._step(last_tokens, before.state)

    def _step(self, last_tokens: Tensor, state: State) -> tuple[Tensor, State]:
        decoder = self._decoder()
        assert decoder is not None
        return decoder.step(last_tokens, state)

    def _run(self, _: Any) -> Tensor:
        """Run the decoder's step and, if it can be captured, the selection; return the logits.

        If the new state does not fit the tensors, it is kept, and there is no selection.
        """
        last_tokens = self._tensors["last_tokens"].view(-1, 1)
        logits, state = self._step(last_tokens, self._state())
        self._change = find_change(self._structure, self._tensors, state)
        if self._change is not None:
            self._changed = state
            return logits
        changed = self._separate(flatten_state(state))
        if self._selects:
            # Written with the results of the selection, in one kernel.
            self._select(logits, unflatten_state(self._tensors | changed, self._structure))
        else:
            self._write(changed)
        return logits

    def _select(self, logits: Tensor, state: State, length: int | None = None) -> None:
        """Select the next tokens from the logits [B * W, 1, V]; reorder and write the state.

        If the selection is not captured, the length of the tokens is needed.
        """
        search, prompts = self._search(length), self._prompts
        suffix = self._tensors["suffix"]
        if length is None:
            prompts = FixedPrompts.of(prompts, suffix)
        else:
            prompts = replace(prompts, suffix=suffix)
        B, W = search.scores.shape
        logits = logits.view(B, W, search.task.vocab)
        selected = select_next(search, logits, self._request, prompts)
        can_fuse = isinstance(search, FixedSearch) and why_not_triton(logits) is None
        table = reordered_table(state) if can_fuse and W > 1 else None
        if W > 1 and table is None:
            state = state.reorder(parent_rows(selected.selection.parents))
        if can_fuse and isinstance(search, FixedSearch):
            from zoo_fast.generation.kernels.update import update_in_place

            updated = flatten_sampler(selected.sampler_state) | flatten_state(state)
            fixed = {name: self._tensors[name] for name in ("invalid", "last_tokens")}
            pairs = update_in_place(
                search, selected, **fixed, table=table, pairs=self._pairs(updated)
            )
        else:
            invalid = find_invalid(search, selected)
            search = update_search(search, selected)
            updated = flatten_search(search) | {"invalid": self._tensors["invalid"] | invalid}
            updated["last_tokens"] = search.last_tokens()
            if length is not None:
                self._tensors["cur_len"].add_(1)
            pairs = self._pairs(updated | flatten_state(state))
        copy_small_into(pairs)

    def _write(self, updated: dict[str, Tensor]) -> None:
        """Copy values to the fixed tensors."""
        copy_into(self._pairs(updated))

    def _pairs(self, updated: dict[str, Tensor]) -> list[Pair]:
        """Return the fixed tensors with their new values."""
        return [(self._tensors[name], value) for name, value in self._separate(updated).items()]

    def _separate(self, updated: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the values that are not the fixed tensors, without those that share memory with
        them, which are copied."""
        fixed = {tensor.untyped_storage().data_ptr() for tensor in self._tensors.values()}
        return {
            name: tensor.clone() if tensor.untyped_storage().data_ptr() in fixed else tensor
            for name, tensor in updated.items()
            if tensor is not self._tensors[name]
        }

    def _state(self) -> State:
        return unflatten_state(self._tensors, self._structure)

    def _search(self, length: int | None) -> SearchState:
        """Return the search; without a length, one that reads it from the device."""
        max_length: Any = self._tensors["max_length"] if self._is_known else self._task.max_length
        task = replace(self._task, max_length=max_length)
        cur_len = self._tensors["cur_len"] if length is None else length
        return unflatten_search(self._tensors, task, cur_len)


def flatten(state: DecodeState) -> dict[str, Tensor]:
    """Return the tensors of a step by name."""
    search = state.search
    device = search.tokens.device
    return {
        **flatten_state(state.state),
        **flatten_search(search),
        "last_tokens": search.last_tokens(),
        "suffix": state.prompts.suffix,
        "cur_len": to_scalar(search.cur_len, device),
        "max_length": to_scalar(search.task.max_length, device),
        "invalid": torch.zeros((), dtype=torch.bool, device=device),
    }
