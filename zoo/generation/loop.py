"""Decoding loop: decoder step, filters, sampler."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from zoo.device.packed_linear import PackedWeights
from zoo.errors import ZooError
from zoo.generation.prompts import PromptBatch, build_prompts, strip_prompts
from zoo.generation.request import DecodeRequest
from zoo.interfaces import (
    Filter,
    FrameSampler,
    GenerationInputs,
    GenerationOutput,
    Sampler,
    SearchConfig,
    SearchState,
    Selection,
)

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
    return GenerationOutput(strip_prompts(tokens, prompts, last.task.eos_ids), scores)


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
        last_tokens = search.tokens[..., search.cur_len - 1]  # [B, 1]
        yield last_tokens.masked_fill(search.num_generated[:, None] <= 0, prompts.pad)


def _search_steps(
    inputs: GenerationInputs, request: DecodeRequest, prompts: PromptBatch, sync_every: int
) -> Iterator[SearchState]:
    """Yield the search state after each step, until all items are done."""
    decoder, sampler = inputs.decoder, request.sampler
    W, device = sampler.width, prompts.prefix.device
    state = decoder.start(inputs.memory, steps=prompts.total_length - 1)
    logits, state = decoder.step(prompts.prefix, state)
    logits = logits[:, -1:].expand(-1, W, -1)  # [B, W, V]
    search = _init_search(sampler, prompts, logits)
    if W > 1:
        state = state.repeat(W)
    is_pad = torch.arange(search.task.vocab, device=device) == prompts.pad
    invalid = torch.zeros((), dtype=torch.bool, device=device)
    packed = PackedWeights()
    for step, sync in _sync_points(prompts.steps, sync_every):
        if step:
            last_tokens = search.tokens[..., search.cur_len - 1].reshape(-1, 1)
            with packed.use():
                logits, state = decoder.step(last_tokens, state)
            logits = logits[:, -1].reshape(-1, W, search.task.vocab)
        logprobs = _next_logprobs(logits, search, request.filters, is_pad, prompts.eos_ids)
        active = ~(search.finished | search.scores.isneginf())
        nan_or_inf = ~(logits.amax(dim=-1) < float("inf"))  # [B, W]; amax propagates NaN
        invalid = invalid | (nan_or_inf & active).any()
        selection, sampler_state = sampler.advance(logprobs, search, request.generator)
        if step < prompts.suffix.shape[1]:
            selection, sampler_state = _force_prompt(
                selection, sampler_state, search, prompts, step
            )
        if W > 1:
            rows = torch.arange(len(selection.parents), device=device)[:, None] * W
            state = state.reorder((rows + selection.parents).flatten())
        search = _update_search(search, selection, sampler_state)
        done = sampler.done(search).all()
        if sync and bool(invalid | done):  # the only synchronisation with the device
            if bool(invalid):
                raise ZooError(f"decoder logits contain NaN or inf (at or before step {step + 1})")
            yield search
            return
        yield search
        search = replace(search, num_generated=search.num_generated + 1)


def _sync_points(steps: int, sync_every: int) -> Iterator[tuple[int, bool]]:
    """Yield each step and whether to synchronise with the device after it."""
    for step in range(steps):
        yield step, step % sync_every == sync_every - 1 or step == steps - 1


def _init_search(sampler: Sampler, prompts: PromptBatch, logits: Tensor) -> SearchState:
    B, W, V = logits.shape
    device = logits.device
    prompts.validate_vocab(V)
    eos_ids = torch.tensor(prompts.eos_ids, dtype=torch.long, device=device)
    task = SearchConfig(B, V, prompts.total_length, prompts.max_length, prompts.pad, eos_ids)
    tokens = torch.full((B, W, prompts.total_length), prompts.pad, dtype=torch.long, device=device)
    cur_len = prompts.prefix.shape[1]
    tokens[..., :cur_len] = prompts.prefix[:, None]
    # The hypotheses of a group start equal, so only the first one is active.
    scores = torch.full((B, W), float("-inf"), device=device)
    scores[:, :: W // sampler.groups] = 0.0
    finished = torch.zeros(B, W, dtype=torch.bool, device=device)
    num_generated = 1 - prompts.forced_lengths
    return SearchState(
        task, tokens, scores, finished, num_generated, cur_len, sampler.init_state(task)
    )


def _next_logprobs(
    logits: Tensor,
    search: SearchState,
    filters: Sequence[Filter],
    is_pad: Tensor,
    eos_ids: Collection[int],
) -> Tensor:
    """Return the filtered log-probabilities [B, W, V] of the next tokens.

    is_pad [V] is True at the padding token, the only token of finished hypotheses.
    """
    tokens, logits = search.tokens[..., : search.cur_len], logits.float()
    if logits.shape[1] > 1:
        logits = logits.log_softmax(dim=-1)
    for each in filters:
        logits = each(logits, tokens)
    logprobs = logits.log_softmax(dim=-1) if logits.shape[1] == 1 else logits
    # The log-softmax of a row of -inf is NaN.
    logprobs = logprobs.nan_to_num(nan=float("-inf"), neginf=float("-inf"))
    if search.task.pad not in eos_ids:
        logprobs = logprobs.masked_fill(is_pad, float("-inf"))
    pad_only = torch.zeros_like(logprobs[:1, :1]).masked_fill(~is_pad, float("-inf"))
    return torch.where(search.finished[..., None], pad_only, logprobs)


def _force_prompt(
    selection: Selection,
    sampler_state: Mapping[str, Tensor],
    search: SearchState,
    prompts: PromptBatch,
    step: int,
) -> tuple[Selection, Mapping[str, Tensor]]:
    """Replace the selection by the next prompt token where an item's prompt has not ended."""
    is_forced = step < prompts.forced_lengths  # [B]
    own = torch.arange(selection.tokens.shape[1], device=is_forced.device)  # [W]
    forced = Selection(
        torch.where(is_forced[:, None], prompts.suffix[:, step : step + 1], selection.tokens),
        torch.where(is_forced[:, None], own, selection.parents),
        torch.where(is_forced[:, None], search.scores, selection.scores),
    )
    return forced, {
        name: torch.where(
            is_forced.view(-1, *[1] * (updated.dim() - 1)), search.sampler_state[name], updated
        )
        for name, updated in sampler_state.items()
    }


def _update_search(
    search: SearchState, selection: Selection, sampler_state: Mapping[str, Tensor]
) -> SearchState:
    """Return the search state after a selection."""
    tokens, finished = search.tokens, search.finished
    if tokens.shape[1] > 1:
        tokens = tokens.gather(1, selection.parents[..., None].expand_as(tokens))
        finished = finished.gather(1, selection.parents)
    tokens[..., search.cur_len] = selection.tokens
    num_generated = search.num_generated[:, None]
    ends = search.task.is_eos(selection.tokens) | (num_generated >= search.task.max_length)
    finished = finished | (ends & (num_generated >= 1))
    return replace(
        search,
        tokens=tokens,
        scores=selection.scores,
        finished=finished,
        cur_len=search.cur_len + 1,
        sampler_state=sampler_state,
    )


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
