"""The loop: the decoder speaks, filters lower, the sampler chooses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.generation.request import DecodeRequest, build_request, strip_prompts, sync_points
from zoo.interfaces import (
    Decoder,
    Filter,
    FrameSampler,
    GenerationOutput,
    Memory,
    Sampler,
    SearchConfig,
    SearchState,
    Selection,
)

SYNC_EVERY = 8
"""Steps between two looks from the host on a device that runs ahead of it."""


@torch.no_grad()
def decode(
    decoder: Decoder,
    memory: Memory,
    sampler: Sampler,
    *,
    bos: int,
    eos: int | Collection[int],
    pad: int,
    max_length: int,
    generator: torch.Generator | None = None,
    filters: Sequence[Filter] = (),
    prompt: Tensor | None = None,
    lengths: Tensor | None = None,
) -> GenerationOutput:
    """Let the decoder speak, the sampler choose, until every hypothesis has ended.

    Args:
        bos: token that starts a sequence; eos: that ends it, or several that do; pad: that fills
            it after its end, and is never chosen before unless it is an end token itself.
        max_length: new tokens at the most, the end token included.
        filters: applied to the next tokens' scores in this order, before the sampler.
        prompt: what was said before, [B, P], the start token first, padded on the right; the
            start token alone if not given.
        lengths: how much of each prompt is real, [B]; up to its padding if not given.

    Shapes:
        B items of memory -> tokens [B, N, T] without the prompt, and scores [B, N]; N as many as
        the sampler returns, best first.
    """
    _forbid_frame_sampler(sampler)
    request = build_request(
        decoder,
        memory,
        bos=bos,
        eos=eos,
        pad=pad,
        max_length=max_length,
        prompt=prompt,
        lengths=lengths,
    )
    sync_every = 1 if memory.states.device.type == "cpu" else SYNC_EVERY
    for search in _search_steps(decoder, memory, sampler, request, filters, generator, sync_every):
        last = search
    tokens, scores = sampler.finish(last)
    _require_continuation(scores)
    return GenerationOutput(strip_prompts(tokens, request, last.task.eos_ids), scores)


def stream(
    decoder: Decoder,
    memory: Memory,
    sampler: Sampler,
    *,
    bos: int,
    eos: int | Collection[int],
    pad: int,
    max_length: int,
    generator: torch.Generator | None = None,
    filters: Sequence[Filter] = (),
    prompt: Tensor | None = None,
    lengths: Tensor | None = None,
) -> Iterator[Tensor]:
    """The tokens that ``decode`` would return, [B, 1] a step, as they are chosen.

    An item yields padding after its end and, among prompts of unequal lengths, before its
    beginning. The iterator can be left at any time; nothing is kept.
    """
    _forbid_frame_sampler(sampler)
    if sampler.width != 1 or type(sampler).finish is not Sampler.finish:
        raise ZooError(
            f"sampler '{sampler.name}' knows its answer only at the end, for it keeps hypotheses "
            f"(width {sampler.width}); only samplers that keep one and never go back can stream"
        )
    request = build_request(
        decoder,
        memory,
        bos=bos,
        eos=eos,
        pad=pad,
        max_length=max_length,
        prompt=prompt,
        lengths=lengths,
    )
    return _stream_steps(decoder, memory, sampler, request, filters, generator)


@torch.no_grad()
def _stream_steps(
    decoder: Decoder,
    memory: Memory,
    sampler: Sampler,
    request: DecodeRequest,
    filters: Sequence[Filter],
    generator: torch.Generator | None,
) -> Iterator[Tensor]:
    for search in _search_steps(decoder, memory, sampler, request, filters, generator, 1):
        _require_continuation(search.scores)
        last_tokens = search.tokens[..., search.cur_len - 1]  # [B, 1]
        yield last_tokens.masked_fill(search.num_generated[:, None] <= 0, request.pad)


def _search_steps(
    decoder: Decoder,
    memory: Memory,
    sampler: Sampler,
    request: DecodeRequest,
    filters: Sequence[Filter],
    generator: torch.Generator | None,
    sync_every: int,
) -> Iterator[SearchState]:
    """The search after each step, until no item needs another."""
    W, device = sampler.width, request.prefix.device
    if generator is not None and generator.device.type != device.type:
        raise ZooError(f"the generator is on {generator.device}, the memory on {device}")
    state = decoder.start(memory, steps=request.total_length - 1)
    logits, state = decoder.step(request.prefix, state)
    logits = logits[:, -1:].expand(-1, W, -1)  # [B, W, V]
    search = _init_search(sampler, request, logits)
    if W > 1:
        state = state.repeat(W)
    padding = torch.arange(search.task.vocab, device=device) == request.pad
    wrong = torch.zeros((), dtype=torch.bool, device=device)
    for step, sync in sync_points(request.steps, sync_every):
        if step:
            last_tokens = search.tokens[..., search.cur_len - 1].reshape(-1, 1)
            logits, state = decoder.step(last_tokens, state)
            logits = logits[:, -1].reshape(-1, W, search.task.vocab)
        logprobs = _next_logprobs(logits, search, filters, padding, request.eos_ids)
        alive = ~(search.finished | search.scores.isneginf())
        absurd = ~(logits.amax(dim=-1) < float("inf"))  # [B, W]; so it is where one is NaN
        wrong = wrong | (absurd & alive).any()
        chosen, sampler_state = sampler.advance(logprobs, search, generator)
        if step < request.suffix.shape[1]:
            chosen, sampler_state = _force_prompt(chosen, sampler_state, search, request, step)
        if W > 1:
            rows = torch.arange(len(chosen.parents), device=device)[:, None] * W
            state = state.reorder((rows + chosen.parents).flatten())
        search = _update_search(search, chosen, sampler_state)
        done = sampler.done(search).all()
        if sync and bool(wrong | done):  # the only question to the host
            if bool(wrong):
                raise ZooError(
                    f"the decoder's logits are no numbers (NaN or inf), by token {step + 1}"
                )
            yield search
            return
        yield search
        search = replace(search, num_generated=search.num_generated + 1)


def _init_search(sampler: Sampler, request: DecodeRequest, logits: Tensor) -> SearchState:
    B, W, V = logits.shape
    device = logits.device
    request.validate_vocab(V)
    eos_ids = torch.tensor(request.eos_ids, dtype=torch.long, device=device)
    task = SearchConfig(B, V, request.total_length, request.max_length, request.pad, eos_ids)
    tokens = torch.full((B, W, request.total_length), request.pad, dtype=torch.long, device=device)
    at = request.prefix.shape[1]
    tokens[..., :at] = request.prefix[:, None]
    # Hypotheses start alike: all but the first of a group are out of the race.
    scores = torch.full((B, W), float("-inf"), device=device)
    scores[:, :: W // sampler.groups] = 0.0
    finished = torch.zeros(B, W, dtype=torch.bool, device=device)
    return SearchState(
        task, tokens, scores, finished, 1 - request.forced_lengths, at, sampler.init_state(task)
    )


def _next_logprobs(
    logits: Tensor,
    search: SearchState,
    filters: Sequence[Filter],
    padding: Tensor,
    eos_ids: Collection[int],
) -> Tensor:
    """Log-probabilities [B, W, V] of what each hypothesis may say next.

    padding [V] is True at the padding token, which comes after the end and never before.
    """
    generated, logits = search.tokens[..., : search.cur_len], logits.float()
    if logits.shape[1] > 1:
        logits = logits.log_softmax(dim=-1)
    for each in filters:
        logits = each(logits, generated)
    logprobs = logits.log_softmax(dim=-1) if logits.shape[1] == 1 else logits
    logprobs = logprobs.nan_to_num(nan=float("-inf"), neginf=float("-inf"))  # nothing possible
    if search.task.pad not in eos_ids:
        logprobs = logprobs.masked_fill(padding, float("-inf"))
    ended = torch.zeros_like(logprobs[:1, :1]).masked_fill(~padding, float("-inf"))
    return torch.where(search.finished[..., None], ended, logprobs)


def _force_prompt(
    chosen: Selection,
    sampler_state: Mapping[str, Tensor],
    search: SearchState,
    request: DecodeRequest,
    step: int,
) -> tuple[Selection, Mapping[str, Tensor]]:
    """The choice, but for the items whose prompt goes on: these say it and stay as they were."""
    still = step < request.forced_lengths  # [B]
    W = chosen.tokens.shape[1]
    selection = Selection(
        torch.where(still[:, None], request.suffix[:, step : step + 1], chosen.tokens),
        torch.where(still[:, None], torch.arange(W, device=still.device), chosen.parents),
        torch.where(still[:, None], search.scores, chosen.scores),
    )
    return selection, {
        name: torch.where(
            still.view(-1, *[1] * (after.dim() - 1)), search.sampler_state[name], after
        )
        for name, after in sampler_state.items()
    }


def _update_search(
    search: SearchState, chosen: Selection, sampler_state: Mapping[str, Tensor]
) -> SearchState:
    """The search after the choice."""
    tokens, finished = search.tokens, search.finished
    if tokens.shape[1] > 1:
        tokens = tokens.gather(1, chosen.parents[..., None].expand_as(tokens))
        finished = finished.gather(1, chosen.parents)
    tokens[..., search.cur_len] = chosen.tokens
    count = search.num_generated[:, None]
    over = search.task.is_eos(chosen.tokens) | (count >= search.task.max_length)
    finished = finished | (over & (count >= 1))
    return replace(
        search,
        tokens=tokens,
        scores=chosen.scores,
        finished=finished,
        cur_len=search.cur_len + 1,
        sampler_state=sampler_state,
    )


def _forbid_frame_sampler(sampler: Sampler) -> None:
    if isinstance(sampler, FrameSampler):
        raise ZooError(
            f"sampler '{sampler.name}' reads all frames at once, but a decoder speaks token by "
            "token; choose one that does, for example greedy or beam"
        )


def _require_continuation(scores: Tensor) -> None:
    """ZooError if an item has no possible continuation."""
    silent = scores[:, 0].isneginf()
    if bool(silent.any()):
        item = int(silent.int().argmax())
        raise ZooError(
            f"nothing can be said for item {item}: every next token is impossible, "
            "by the decoder's logits or by the filters"
        )
