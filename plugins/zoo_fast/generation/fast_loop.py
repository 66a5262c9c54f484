"""The decoding loop with captured steps, packed weights and few synchronisations."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from zoo.acceleration import accelerate, is_accelerated
from zoo.generation.loop import DecodingLoop
from zoo.generation.prompts import build_prompts
from zoo.generation.search import DecodeState, update
from zoo.plugin import Acceleration, Call, DecodeRequest, GenerationInputs, Memory, State
from zoo_fast.device.packed_linear import PackedWeights
from zoo_fast.generation.captured_calls import Inspected, inspect_module, why_not_parts
from zoo_fast.generation.compaction import Compaction
from zoo_fast.generation.end_flags import EndFlags
from zoo_fast.generation.kept_steps import captured_steps
from zoo_fast.generation.known_samplers import is_known, known_sampler
from zoo_fast.generation.lengths import lengths_vary, make_room
from zoo_fast.generation.padded_prompts import PaddedPrompts, pad_prompts
from zoo_fast.generation.prompt_pass import PromptPass, selects_first
from zoo_fast.generation.search_settings import SearchSettings, settings_of
from zoo_fast.generation.selection import select_next
from zoo_fast.generation.token_copy import TokenCopy

SYNC_EVERY = 8
"""Steps between two synchronisations with an asynchronous device."""


class FastDecodingLoop(Acceleration):
    """Decodes with captured steps on a GPU, and with packed weights on the CPU.

    On a GPU the end of the search is read every few steps only, while further steps run. Items that
    are done leave the batch, unless the tokens are streamed.
    """

    name: ClassVar[str] = "fast-decoding-loop"
    serves: ClassVar[type[DecodingLoop]] = DecodingLoop
    supports_autocast: ClassVar[bool] = True
    calls_parts: ClassVar[bool] = True

    def run(self, target: DecodingLoop) -> tuple[Tensor, Tensor]:
        return FastLoop(target).run()

    def steps(self, target: DecodingLoop) -> Iterator[DecodeState]:
        return FastLoop(target).steps()

    def stream(self, target: DecodingLoop) -> Iterator[Tensor]:
        return FastLoop(target).stream()

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        from zoo.testing.tiny import TinyDecoder, TinyEmbedding, TinySampler

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            decoder = TinyDecoder(embedding=TinyEmbedding(), summary_dim=4).eval()
            for items in (5, 1, 0):
                summary = torch.randn(items, 4)
                mask = torch.ones(items, 1, dtype=torch.bool)
                memory = Memory(summary[:, None], mask, summary)
                inputs = GenerationInputs(decoder, memory, bos=1, eos=2, pad=0)
                request = DecodeRequest(sampler=TinySampler(), max_length=12)
                prompts = build_prompts(inputs, request.max_length)
                loop = DecodingLoop(
                    decoder=decoder, memory=memory, prompts=prompts, request=request
                )
                yield Call(loop, (), method="run")


class FastLoop(DecodingLoop):
    """A decoding loop that computes the results of another one faster."""

    def __init__(self, plain: DecodingLoop) -> None:
        sampler = plain.request.sampler
        if not is_accelerated(sampler):
            copied = accelerate(copy.copy(sampler))
            # Without accelerations the object itself, for which captured steps may be kept.
            sampler = copied if is_accelerated(copied) else sampler
        super().__init__(
            decoder=plain.decoder,
            memory=plain.memory,
            prompts=plain.prompts,
            request=replace(plain.request, sampler=sampler),
        )
        self._share_graphs = self._shares_graphs()
        rows = len(plain.prompts.prefix) * sampler.width
        self._packed = PackedWeights(rows=rows, calls=plain.prompts.steps)
        self._inspected: Inspected | None = None
        self._settings: SearchSettings | None = None
        self._padded: PaddedPrompts | None = None

    def _shares_graphs(self) -> bool:
        """Whether lengths are padded, which hooks, recorders, dropout and samplers of unknown
        classes would see."""
        texts, source = self.prompts, self.memory.mask.shape[1]
        lengths = texts.prefix.shape[1], texts.suffix.shape[1], texts.total_length, source
        varying = lengths_vary(self.decoder, self.device, *lengths)
        return varying and is_known(self.request.sampler) and why_not_parts(self.decoder) is None

    def run(self) -> tuple[Tensor, Tensor]:
        length = self.prompts.total_length
        self._arrange_prompts()
        sync_every = 1 if self.device.type == "cpu" else SYNC_EVERY
        first = self.first()
        compaction = Compaction(self.request.sampler, first)
        for _ in self.steps_after(first, sync_every, compaction):
            pass
        tokens, scores = compaction.outputs
        if self._padded is not None and self._padded.ragged:
            tokens = self._padded.align_left(tokens)
        return tokens[..., :length], scores

    def _arrange_prompts(self) -> None:
        """Process prompts of different lengths together, if the decoder's kernels can, and pad
        lengths to those that captured graphs share."""
        share, length = self._share_graphs, 0
        self._padded = pad_prompts(self.decoder, self.prompts, self.request, share_graphs=share)
        if self._padded is not None:
            self.prompts, length = self._padded.aligned, self._padded.tokens.shape[1]
        if share:
            self.prompts = make_room(self.prompts, self.decoder, length)

    def steps(self) -> Iterator[DecodeState]:
        yield from self.steps_after(self.first(), sync_every=1)

    def stream(self) -> Iterator[Tensor]:
        self._arrange_prompts()
        columns = self._stream()
        if self._padded is None or not self._padded.ragged:
            yield from columns
        else:
            yield from self._padded.delay(columns)

    def _stream(self) -> Iterator[Tensor]:
        """Yield the tokens of each step; on a GPU, while the next step runs.

        The next step of a random sampler is not begun before it is needed, so that the numbers that
        are drawn are those of the reference path.
        """
        if self.device.type != "cuda" or known_sampler(self.request.sampler).keeps_items:
            yield from super().stream()
            return
        state, total = self.first(), self.prompts.steps
        further, copied = self.further_steps(state), self._copy_tokens(state)
        for number in range(1, total + 1):
            current = copied
            if number < total:
                copied = self._copy_tokens(next(further))
            tokens, done = current.wait(number)
            yield tokens
            if done:
                return

    def _copy_tokens(self, state: DecodeState) -> TokenCopy:
        return TokenCopy(self.new_tokens(state), state, self.request.sampler.done(state.search))

    def steps_after(
        self, state: DecodeState, sync_every: int, compaction: Compaction | None = None
    ) -> Iterator[DecodeState]:
        """Yield the state after each step, from the first one on, until all items are done.

        The outputs are kept in the compaction, since another call can overwrite those of the last
        step after it.
        """
        flags, total = EndFlags(lag=sync_every > 1), self.prompts.steps
        further = self.further_steps(state)
        for number in range(1, total + 1):
            state = state if number == 1 else next(further)
            ended = number == total
            if ended and compaction is not None and is_known(self.request.sampler):
                compaction.keep(state)  # before the host waits for the flags
                compaction = None
            if ended or number % sync_every == 0:
                all_done = self.request.sampler.done(state.search)
                done = flags.read(state.invalid, all_done, number, wait=ended)
                ended = ended or (done is not None and all(done))
                reduced = None
                if compaction is not None and done is not None and not ended:
                    reduced = compaction.reduce(state, done, total - number)
                if reduced is not None:
                    state, flags = reduced, EndFlags(lag=sync_every > 1)
                    further = self.further_steps(state)
            if ended and compaction is not None:
                compaction.keep(state)
            yield state
            if ended:
                return

    def further_steps(self, state: DecodeState) -> Iterator[DecodeState]:
        """Yield the state after each further step; has no end."""
        # Captured steps are not used by other calls before this iterator is deleted.
        steps = self._equal_steps(state)
        while not self.restarts(state.search) and not self._filters_last(state.search.cur_len):
            state = next(steps)
            yield state
        state = self.step(state)
        yield state
        yield from self.further_steps(state)

    def _equal_steps(self, state: DecodeState) -> Iterator[DecodeState]:
        """Yield the states after steps with the same shapes and filters."""
        request = self._request_at(state.search.cur_len)
        captured = captured_steps(self.decoder, request, state, self._inspect(), self._settings)
        if captured is not None:
            for after in captured.run(request, state):
                if captured.generator is not self.request.generator:
                    # Ordinary steps after captured ones continue with their random numbers.
                    self.request = replace(self.request, generator=captured.generator)
                yield after
        while True:
            state = self.step(state)
            yield state

    def _request_at(self, cur_len: int) -> DecodeRequest:
        """Return the options of the next step: before the last one, without filters of the last
        token, which would be computed in each step."""
        filters = [each for each in self.request.filters if not each.at_max_length]
        if len(filters) == len(self.request.filters) or self.prompts.suffix.shape[1]:
            return self.request
        if self._filters_last(cur_len):
            return self.request
        return replace(self.request, filters=filters)

    def _filters_last(self, cur_len: int) -> bool:
        """Whether the next token is the last one of all items, and has filters of its own."""
        is_last = cur_len + 1 == self.prompts.prefix.shape[1] + self.prompts.steps
        return is_last and any(each.at_max_length for each in self.request.filters)

    def first(self) -> DecodeState:
        request = self._request_at(self.prompts.prefix.shape[1])
        if not selects_first(request):
            return super().first()
        with self._packed.use():
            self._settings = settings_of(request, self.prompts)
            found = self._prompt_pass().first(request, self._settings)
        return found if isinstance(found, DecodeState) else self.start_search(*found)

    def process_prompts(self) -> tuple[Tensor, State]:
        with self._packed.use():
            return self._prompt_pass().logits()

    def _prompt_pass(self) -> PromptPass:
        return PromptPass(
            self.decoder,
            self.memory,
            self.prompts,
            self._padded,
            self._share_graphs,
            self._inspect,
        )

    def _inspect(self) -> Inspected:
        if self._inspected is None:
            self._inspected = inspect_module(self.decoder, self.device)
        return self._inspected

    def step(self, before: DecodeState) -> DecodeState:
        with self._packed.use():
            return super().step(before)

    def advance(self, before: DecodeState, logits: Tensor, state: State) -> DecodeState:
        request = self._request_at(before.search.cur_len)
        selected = select_next(before.search, logits, request, before.prompts)
        return update(before, selected, state)
