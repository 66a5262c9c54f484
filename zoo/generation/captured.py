"""Decoding steps on tensors of fixed address, recorded as CUDA graphs."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from zoo.device.cuda_graph import GraphedFunction
from zoo.device.triton_support import why_not_triton
from zoo.generation.recorded_calls import copy_into
from zoo.generation.request import DecodeRequest
from zoo.generation.search import Progress, advance_search, parent_rows, select_next
from zoo.generation.tensors_by_name import flatten_state, unflatten_state
from zoo.interfaces import Decoder, SearchState, State


class CapturedSteps:
    """The steps of one decoder after the first one, for inputs of one shape.

    The state of the decoder and of the search are kept in tensors of fixed address, which a step
    updates. The first steps run as they are; then the step is recorded as a CUDA graph, if the
    device is a GPU. With filters, which take tokens of growing length, only the step of the decoder
    is recorded.

    Args:
        decoder: not kept alive by this object.
        request: the sampler and the filters; its generator is replaced by a copy.
        progress: the states after the first step, whose shapes are used.

    Attributes:
        bytes: the memory of the fixed tensors.
        is_running: whether a call uses them.
    """

    def __init__(self, decoder: Decoder, request: DecodeRequest, progress: Progress) -> None:
        search = progress.search
        device = search.tokens.device
        self._decoder = weakref.ref(decoder)
        generator = None if request.generator is None else torch.Generator(device)
        self._request = replace(request, generator=generator)
        self._prompts = progress.prompts
        self._task = search.task
        with torch.inference_mode(False):
            self._tensors = {
                name: torch.empty_like(tensor, memory_format=torch.contiguous_format)
                for name, tensor in flatten(progress).items()
            }
        self.bytes = sum(tensor.nbytes for tensor in self._tensors.values())
        self.is_running = False
        generators = () if generator is None else (generator,)
        self._graph = (
            GraphedFunction(self._run, generators=generators) if device.type == "cuda" else None
        )

    @property
    def reason(self) -> str | None:
        """The reason why the step could not be recorded, None if it was or was not yet."""
        return "the device is not a GPU" if self._graph is None else self._graph.reason

    def run(self, request: DecodeRequest, progress: Progress) -> Iterator[Progress]:
        """Yield the progress after each further step.

        Its tensors are overwritten by the next step. The generator of the request continues from
        the last step.
        """
        prompts, search = progress.prompts, progress.search
        self._write(flatten(progress) | {"invalid": progress.invalid})
        own, generator = self._request.generator, request.generator
        if own is not None and generator is not None:
            own.set_state(generator.get_state())
        assert isinstance(search.cur_len, int)
        length = search.cur_len
        fixed, state = self._search(), self._state()
        self.is_running = True
        try:
            while True:
                logits = self._run({}) if self._graph is None else self._graph({})
                if self._request.filters:
                    self._select(logits, length)
                length += 1
                search = replace(fixed, cur_len=length)
                yield Progress(prompts, search, state, self._tensors["invalid"])
        finally:
            self.is_running = False
            if own is not None and generator is not None:
                generator.set_state(own.get_state())

    def _run(self, _: Any) -> Tensor:
        """Run the decoder's step and, without filters, the selection; return the logits."""
        decoder = self._decoder()
        assert decoder is not None
        last_tokens = self._tensors["last_tokens"].view(-1, 1)
        logits, state = decoder.step(last_tokens, self._state())
        self._write(flatten_state(state))
        if not self._request.filters:
            self._select(logits, self._tensors["cur_len"])
        return logits

    def _select(self, logits: Tensor, cur_len: int | Tensor) -> None:
        """Select the next tokens from the logits [B * W, 1, V] and reorder the state."""
        search = replace(self._search(), cur_len=cur_len)
        B, W = search.scores.shape
        prompts = replace(self._prompts, suffix=self._tensors["suffix"])
        logits = logits.view(B, W, -1)
        if isinstance(cur_len, Tensor) and why_not_triton(logits) is None:
            from zoo.generation.kernels.update import update_in_place

            selection, sampler_state, nan_or_inf = select_next(
                search, logits, self._request, prompts
            )
            fixed = {name: self._tensors[name] for name in ("invalid", "last_tokens")}
            update_in_place(search, selection, nan_or_inf, **fixed)
            cur_len.add_(1)
            parents, updated = selection.parents, _flatten_sampler(sampler_state)
        else:
            search, parents, invalid = advance_search(search, logits, self._request, prompts)
            updated = _flatten_search(search) | {"invalid": self._tensors["invalid"] | invalid}
            updated["last_tokens"] = search.last_tokens()
            if isinstance(cur_len, int):
                self._tensors["cur_len"].add_(1)
        if W > 1:
            updated |= flatten_state(self._state().reorder(parent_rows(parents)))
        self._write(updated)

    def _write(self, updated: dict[str, Tensor]) -> None:
        """Copy values to the fixed tensors; one that shares memory with them is copied first."""
        fixed = {tensor.untyped_storage().data_ptr() for tensor in self._tensors.values()}
        changed = {
            name: tensor.clone() if tensor.untyped_storage().data_ptr() in fixed else tensor
            for name, tensor in updated.items()
            if tensor is not self._tensors[name]
        }
        copy_into([self._tensors[name] for name in changed], list(changed.values()))

    def _state(self) -> State:
        return unflatten_state(self._tensors)

    def _search(self) -> SearchState:
        prefix = "sampler_state."
        return SearchState(
            task=self._task,
            cur_len=self._tensors["cur_len"],
            sampler_state={
                n.removeprefix(prefix): t for n, t in self._tensors.items() if n.startswith(prefix)
            },
            **{name: self._tensors[name] for name in _SEARCH_FIELDS},
        )


_SEARCH_FIELDS = ("tokens", "scores", "finished", "num_generated")


def _flatten_sampler(sampler_state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"sampler_state.{name}": tensor for name, tensor in sampler_state.items()}


def _flatten_search(search: SearchState) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {name: getattr(search, name) for name in _SEARCH_FIELDS}
    tensors |= _flatten_sampler(search.sampler_state)
    if isinstance(search.cur_len, Tensor):
        tensors["cur_len"] = search.cur_len
    return tensors


def flatten(progress: Progress) -> dict[str, Tensor]:
    """Return the tensors of a step by name."""
    search = progress.search
    device = search.tokens.device
    return {
        **flatten_state(progress.state),
        **_flatten_search(search),
        "last_tokens": search.last_tokens(),
        "suffix": progress.prompts.suffix,
        "cur_len": torch.full((), int(search.cur_len), dtype=torch.long, device=device),
        "invalid": torch.zeros((), dtype=torch.bool, device=device),
    }
