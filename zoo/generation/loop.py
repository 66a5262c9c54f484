"""Autoregressive decoding: decoder step, filters, sampler, until all items have ended."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from zoo.acceleration import accelerate, is_accelerated
from zoo.errors import ZooError
from zoo.generation.prompts import PromptBatch, build_prompts, strip_prompts, vocab_size
from zoo.generation.request import DecodeRequest
from zoo.generation.search import DecodeState, init_search, select_next, update
from zoo.interfaces import (
    Decoder,
    FrameSampler,
    GenerationInputs,
    GenerationOutput,
    Memory,
    Sampler,
    SearchState,
    State,
)


class DecodingLoop:
    """Decodes a batch: processes the prompts, then generates one token per hypothesis and step.

    Args:
        decoder: in evaluation mode.
        memory: the source.
        prompts: the validated prompts.
        request: sampler, filters and random generator.

    Shapes:
        B items of memory, W hypotheses per item, V vocabulary.
    """

    def __init__(
        self, *, decoder: Decoder, memory: Memory, prompts: PromptBatch, request: DecodeRequest
    ) -> None:
        self.decoder = decoder
        self.memory = memory
        self.prompts = prompts
        self.request = request

    @property
    def device(self) -> torch.device:
        return self.memory.states.device

    def run(self) -> tuple[Tensor, Tensor]:
        """Return tokens [B, N, total_length] and scores [B, N] of the hypotheses, best first."""
        for state in self.steps():
            last = state
        return self.request.sampler.finish(last.search)

    def steps(self) -> Iterator[DecodeState]:
        """Yield the state after each step, until all items are done."""
        sampler, state = self.request.sampler, self.first()
        for number in range(1, self.prompts.steps + 1):
            if number > 1:
                state = self.step(state)
            require_valid(bool(state.invalid), number)
            yield state
            if bool(sampler.done(state.search).all()):
                return

    def stream(self) -> Iterator[Tensor]:
        """Yield the tokens [B, 1] of each step, on the CPU; padding where an item has none."""
        for state in self.steps():
            require_finite_score(state.search.scores)
            yield self.new_tokens(state).cpu()

    def new_tokens(self, state: DecodeState) -> Tensor:
        """Return the tokens [B, 1] of the last step; padding where a prompt has not ended."""
        search = state.search
        return search.last_tokens().masked_fill(
            search.num_generated[:, None] <= 1, self.prompts.pad
        )

    def first(self) -> DecodeState:
        """Process the prompts and select the first tokens."""
        return self.start_search(*self.process_prompts())

    def start_search(self, logits: Tensor, state: State) -> DecodeState:
        """Select the first tokens from the logits [B, 1, V] and the state after the prompts."""
        V, W = logits.shape[-1], self.request.sampler.width
        if vocab_size(self.decoder) != V:
            self.prompts.validate_vocab(V)
        search = init_search(self.request.sampler, self.prompts, V)
        state = state.repeat(W) if W > 1 else state
        invalid = torch.zeros((), dtype=torch.bool, device=logits.device)
        before = DecodeState(self.prompts, search, state, invalid)
        return self.advance(before, logits.expand(-1, W, -1), state)

    def process_prompts(self) -> tuple[Tensor, State]:
        """Process the common part of the prompts; return the logits [B, 1, V] of the next token."""
        state = self.decoder.start(self.memory, steps=self.max_steps(self.prompts.prefix.shape[1]))
        return self.decoder.process_prompt(self.prompts.prefix, state)

    def max_steps(self, length: int) -> int:
        """Return the number of steps of the decoder's state for texts of a length."""
        return self.decoder.max_steps(length, self.prompts.total_length - 1)

    def restarts(self, search: SearchState) -> bool:
        """Whether the decoder processes the tokens so far again in the next step."""
        return self.max_steps(search.cur_len - 1) < search.cur_len

    def step(self, before: DecodeState) -> DecodeState:
        """Run the decoder on the last tokens and select the next ones."""
        search = before.search
        if self.restarts(search):
            state = self.decoder.restart(before.state, steps=self.max_steps(search.cur_len))
            tokens = search.seen_tokens().flatten(0, 1)
            logits, state = self.decoder.process_prompt(tokens, state)
        else:
            logits, state = self.decoder.step(search.last_tokens().reshape(-1, 1), before.state)
        logits = logits[:, -1].reshape(*search.scores.shape, search.task.vocab)
        return self.advance(before, logits, state)

    def advance(self, before: DecodeState, logits: Tensor, state: State) -> DecodeState:
        """Select the next tokens from logits [B, W, V] and reorder the decoder's state."""
        selected = select_next(before.search, logits, self.request, before.prompts)
        return update(before, selected, state)


@torch.no_grad()
def decode(inputs: GenerationInputs, request: DecodeRequest) -> GenerationOutput:
    """Generate until every hypothesis has ended or has ``request.max_length`` tokens.

    The padding token is never selected before the end token, unless it is an end token itself or
    the model generates it (``inputs.generates_padding``).

    Shapes:
        B items of memory -> tokens [B, N, T] without the prompt and scores [B, N], best first;
        N is the number of hypotheses that the sampler returns.
    """
    loop = _make_loop(inputs, request)
    tokens, scores = loop.run()
    require_finite_score(scores)
    return GenerationOutput(strip_prompts(tokens, loop.prompts), scores)


def stream_tokens(inputs: GenerationInputs, request: DecodeRequest) -> Iterator[Tensor]:
    """Return an iterator over the tokens of `decode`, [B, 1] per step, as they are selected.

    The iterator yields padding for an item after its end token. If prompts differ in length,
    items with a longer prompt yield padding until their prompt is consumed.
    """
    loop, sampler = _make_loop(inputs, request), request.sampler
    if sampler.width != 1 or type(sampler).finish is not Sampler.finish:
        raise ZooError(
            f"sampler '{sampler.name}' (width {sampler.width}) cannot stream: its output is known "
            "only after the last step; use a sampler with one hypothesis, for example greedy"
        )
    return _without_gradients(loop)


@torch.no_grad()
def _without_gradients(loop: DecodingLoop) -> Iterator[Tensor]:
    yield from loop.stream()


def _make_loop(inputs: GenerationInputs, request: DecodeRequest) -> DecodingLoop:
    """Return the loop; accelerated if the sampler or a part of the decoder is, so that a plain
    model decodes without accelerations.

    Raises ZooError if the inputs or the request are invalid.
    """
    sampler, generator, device = request.sampler, request.generator, inputs.memory.states.device
    if isinstance(sampler, FrameSampler):
        raise ZooError(
            f"sampler '{sampler.name}' decodes all frames in parallel, but a decoder generates one "
            "token at a time; use a token sampler, for example greedy or beam"
        )
    if generator is not None and generator.device.type != device.type:
        raise ZooError(
            f"generator is on {generator.device}, but the model is on {device}; "
            f"create it with torch.Generator('{device.type}')"
        )
    prompts = build_prompts(inputs, request.max_length)
    decoder, memory = inputs.decoder, inputs.memory
    loop = DecodingLoop(decoder=decoder, memory=memory, prompts=prompts, request=request)
    found = is_accelerated(sampler) or is_accelerated(decoder)
    return accelerate(loop) if found or any(map(is_accelerated, decoder.modules())) else loop


def require_valid(invalid: bool, step: int) -> None:
    """Raise ZooError if a logit was NaN or inf."""
    if invalid:
        raise ZooError(f"decoder logits contain NaN or inf (at or before step {step})")


def require_finite_score(scores: Tensor) -> None:
    """Raise ZooError if an item has no hypothesis with a finite score."""
    best, impossible = scores[:, 0].tolist(), float("-inf")
    if impossible in best:
        raise ZooError(
            f"no valid next token for item {best.index(impossible)} (all logits are -inf); "
            "check the decoder and the filters"
        )
