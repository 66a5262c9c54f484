"""Decoding loop: decoder step, filters, sampler."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.generation.end_flags import EndFlags
from zoo.generation.kept_steps import captured_steps, why_not_captured
from zoo.generation.prompts import PromptBatch, build_prompts, strip_prompts
from zoo.generation.request import DecodeRequest
from zoo.generation.search import advance_search, init_search
from zoo.interfaces import FrameSampler, GenerationInputs, GenerationOutput, Sampler, SearchState

SYNC_EVERY = 8
"""Steps between two synchronisations with an asynchronous device."""


@torch.no_grad()
def decode(inputs: GenerationInputs, request: DecodeRequest) -> GenerationOutput:
    """Generate until every hypothesis has ended or has ``request.max_length`` tokens.

    The padding token is never selected before the end token, unless it is an end token itself.

    Shapes:
        B items of memory -> tokens [B, N, T] without the prompt and scores [B, N], best first;
        N is the number of hypotheses that the sampler returns.
    """
    prompts = _validate(inputs, request)
    sync_every = 1 if inputs.memory.states.device.type == "cpu" else SYNC_EVERY
    for search in _search_steps(inputs, request, prompts, sync_every):
        last = search
    tokens, scores = request.sampler.finish(last)
    _require_finite_score(scores)
    # The scores may be a tensor of fixed address, which the next call overwrites.
    return GenerationOutput(strip_prompts(tokens, prompts, last.task.eos_ids), scores.clone())


def stream_tokens(inputs: GenerationInputs, request: DecodeRequest) -> Iterator[Tensor]:
    """Return an iterator over the tokens of `decode`, [B, 1] per step, as they are selected.

    The iterator yields padding for an item after its end token. If prompts differ in length,
    items with a longer prompt yield padding until their prompt is consumed.
    """
    prompts = _validate(inputs, request)
    sampler = request.sampler
    if sampler.width != 1 or type(sampler).finish is not Sampler.finish:
        raise ZooError(
            f"sampler '{sampler.name}' (width {sampler.width}) cannot stream: its output is known "
            "only after the last step; use a sampler with one hypothesis, for example greedy"
        )
    return _stream_steps(inputs, request, prompts)


@torch.no_grad()
def _stream_steps(
    inputs: GenerationInputs, request: DecodeRequest, prompts: PromptBatch
) -> Iterator[Tensor]:
    for search in _search_steps(inputs, request, prompts, sync_every=1):
        _require_finite_score(search.scores)
        yield search.last_tokens().masked_fill(search.num_generated[:, None] <= 1, prompts.pad)


def _search_steps(
    inputs: GenerationInputs, request: DecodeRequest, prompts: PromptBatch, sync_every: int
) -> Iterator[SearchState]:
    """Yield the search state after each step, until all items are done."""
    flags = EndFlags(lag=sync_every > 1)
    steps = islice(_unchecked_steps(inputs, request, prompts), prompts.steps)
    for step, (search, invalid) in enumerate(steps, 1):
        is_last = step == prompts.steps
        if is_last or step % sync_every == 0:
            done = request.sampler.done(search).all()
            is_last = flags.read(invalid, done, step, wait=is_last) or is_last
        yield search
        if is_last:
            return


def _unchecked_steps(
    inputs: GenerationInputs, request: DecodeRequest, prompts: PromptBatch
) -> Iterator[tuple[SearchState, Tensor]]:
    """Yield the search state after each step, and whether a logit was NaN or inf; has no end."""
    decoder, W, device = inputs.decoder, request.sampler.width, prompts.prefix.device
    state = decoder.start(inputs.memory, steps=prompts.total_length - 1)
    logits, state = decoder.step(prompts.prefix, state)
    search = init_search(request.sampler, prompts, logits.shape[-1])
    if W > 1:
        state = state.repeat(W)
    step = advance_search(search, logits[:, -1:].expand(-1, W, -1), request, prompts)
    search, invalid = step.search, step.invalid
    state = state if W == 1 else state.reorder(step.rows())
    yield search, invalid
    if why_not_captured(decoder, device, prompts.steps) is None:
        captured = captured_steps(decoder, request, prompts, state, search)
        if captured is not None:
            yield from captured.run(request, prompts, state, search, invalid)
    while True:
        logits, state = decoder.step(search.last_tokens().reshape(-1, 1), state)
        logits = logits[:, -1].reshape(-1, W, search.task.vocab)
        step = advance_search(search, logits, request, prompts)
        search, invalid = step.search, invalid | step.invalid
        state = state if W == 1 else state.reorder(step.rows())
        yield search, invalid


def _validate(inputs: GenerationInputs, request: DecodeRequest) -> PromptBatch:
    """Return the validated prompts, or raise ZooError if the inputs or the request are invalid."""
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
    return build_prompts(inputs, request.max_length)


def _require_finite_score(scores: Tensor) -> None:
    """Raise ZooError if an item has no hypothesis with a finite score."""
    impossible = scores[:, 0].isneginf()
    if bool(impossible.any()):
        item = int(impossible.int().argmax())
        raise ZooError(
            f"no valid next token for item {item} (all logits are -inf); "
            "check the decoder and the filters"
        )
