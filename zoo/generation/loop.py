"""The loop: the decoder speaks, filters lower, the sampler chooses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.generation.request import Setting, answers, pauses, setting
from zoo.interfaces import (
    Decoded,
    Decoder,
    Filter,
    FrameSampler,
    Memory,
    Sampler,
    Search,
    Selection,
    Task,
)

PATIENCE = 8
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
) -> Decoded:
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
    _refuse_frames(sampler)
    given = setting(
        decoder,
        memory,
        bos=bos,
        eos=eos,
        pad=pad,
        max_length=max_length,
        prompt=prompt,
        lengths=lengths,
    )
    every = 1 if memory.states.device.type == "cpu" else PATIENCE
    for search in _searched(decoder, memory, sampler, given, filters, generator, every):
        last = search
    tokens, scores = sampler.finish(last)
    _refuse_silence(scores)
    return Decoded(answers(tokens, given, last.task.ends), scores)


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
    _refuse_frames(sampler)
    if sampler.width != 1 or type(sampler).finish is not Sampler.finish:
        raise ZooError(
            f"sampler '{sampler.name}' knows its answer only at the end, for it keeps hypotheses "
            f"(width {sampler.width}); only samplers that keep one and never go back can stream"
        )
    given = setting(
        decoder,
        memory,
        bos=bos,
        eos=eos,
        pad=pad,
        max_length=max_length,
        prompt=prompt,
        lengths=lengths,
    )
    return _streamed(decoder, memory, sampler, given, filters, generator)


@torch.no_grad()
def _streamed(
    decoder: Decoder,
    memory: Memory,
    sampler: Sampler,
    given: Setting,
    filters: Sequence[Filter],
    generator: torch.Generator | None,
) -> Iterator[Tensor]:
    for search in _searched(decoder, memory, sampler, given, filters, generator, 1):
        _refuse_silence(search.scores)
        spoken = search.tokens[..., search.at - 1]  # [B, 1]
        yield spoken.masked_fill(search.count[:, None] <= 0, given.pad)


def _searched(
    decoder: Decoder,
    memory: Memory,
    sampler: Sampler,
    given: Setting,
    filters: Sequence[Filter],
    generator: torch.Generator | None,
    every: int,
) -> Iterator[Search]:
    """The search after each step, until no item needs another."""
    W, device = sampler.width, given.prefix.device
    if generator is not None and generator.device.type != device.type:
        raise ZooError(f"the generator is on {generator.device}, the memory on {device}")
    state = decoder.start(memory, steps=given.columns - 1)
    logits, state = decoder.step(given.prefix, state)
    logits = logits[:, -1:].expand(-1, W, -1)  # [B, W, V]
    search = _begun(sampler, given, logits)
    if W > 1:
        state = state.repeat(W)
    padding = torch.arange(search.task.vocab, device=device) == given.pad
    wrong = torch.zeros((), dtype=torch.bool, device=device)
    for step, pause in pauses(given.steps, every):
        if step:
            spoken = search.tokens[..., search.at - 1].reshape(-1, 1)
            logits, state = decoder.step(spoken, state)
            logits = logits[:, -1].reshape(-1, W, search.task.vocab)
        logprobs = _offered(logits, search, filters, padding, given.ends)
        alive = ~(search.finished | search.scores.isneginf())
        absurd = ~(logits.amax(dim=-1) < float("inf"))  # [B, W]; so it is where one is NaN
        wrong = wrong | (absurd & alive).any()
        chosen, kept = sampler.advance(logprobs, search, generator)
        if step < given.rest.shape[1]:
            chosen, kept = _forced(chosen, kept, search, given, step)
        if W > 1:
            rows = torch.arange(len(chosen.parents), device=device)[:, None] * W
            state = state.reorder((rows + chosen.parents).flatten())
        search = _moved(search, chosen, kept)
        done = sampler.done(search).all()
        if pause and bool(wrong | done):  # the only question to the host
            if bool(wrong):
                raise ZooError(
                    f"the decoder's logits are no numbers (NaN or inf), by token {step + 1}"
                )
            yield search
            return
        yield search
        search = replace(search, count=search.count + 1)


def _begun(sampler: Sampler, given: Setting, logits: Tensor) -> Search:
    B, W, V = logits.shape
    device = logits.device
    given.within(V)
    ends = torch.tensor(given.ends, dtype=torch.long, device=device)
    task = Task(B, V, given.columns, given.max_length, given.pad, ends)
    tokens = torch.full((B, W, given.columns), given.pad, dtype=torch.long, device=device)
    at = given.prefix.shape[1]
    tokens[..., :at] = given.prefix[:, None]
    # Hypotheses start alike: all but the first of a group are out of the race.
    scores = torch.full((B, W), float("-inf"), device=device)
    scores[:, :: W // sampler.groups] = 0.0
    finished = torch.zeros(B, W, dtype=torch.bool, device=device)
    return Search(task, tokens, scores, finished, 1 - given.forced, at, sampler.begin(task))


def _offered(
    logits: Tensor,
    search: Search,
    filters: Sequence[Filter],
    padding: Tensor,
    ends: Collection[int],
) -> Tensor:
    """Log-probabilities [B, W, V] of what each hypothesis may say next.

    padding [V] is True at the padding token, which comes after the end and never before.
    """
    said, logits = search.tokens[..., : search.at], logits.float()
    if logits.shape[1] > 1:
        logits = logits.log_softmax(dim=-1)
    for each in filters:
        logits = each(logits, said)
    logprobs = logits.log_softmax(dim=-1) if logits.shape[1] == 1 else logits
    logprobs = logprobs.nan_to_num(nan=float("-inf"), neginf=float("-inf"))  # nothing possible
    if search.task.pad not in ends:
        logprobs = logprobs.masked_fill(padding, float("-inf"))
    ended = torch.zeros_like(logprobs[:1, :1]).masked_fill(~padding, float("-inf"))
    return torch.where(search.finished[..., None], ended, logprobs)


def _forced(
    chosen: Selection, kept: Mapping[str, Tensor], search: Search, given: Setting, step: int
) -> tuple[Selection, Mapping[str, Tensor]]:
    """The choice, but for the items whose prompt goes on: these say it and stay as they were."""
    still = step < given.forced  # [B]
    W = chosen.tokens.shape[1]
    selection = Selection(
        torch.where(still[:, None], given.rest[:, step : step + 1], chosen.tokens),
        torch.where(still[:, None], torch.arange(W, device=still.device), chosen.parents),
        torch.where(still[:, None], search.scores, chosen.scores),
    )
    return selection, {
        name: torch.where(still.view(-1, *[1] * (after.dim() - 1)), search.kept[name], after)
        for name, after in kept.items()
    }


def _moved(search: Search, chosen: Selection, kept: Mapping[str, Tensor]) -> Search:
    """The search after the choice."""
    tokens, finished = search.tokens, search.finished
    if tokens.shape[1] > 1:
        tokens = tokens.gather(1, chosen.parents[..., None].expand_as(tokens))
        finished = finished.gather(1, chosen.parents)
    tokens[..., search.at] = chosen.tokens
    count = search.count[:, None]
    over = search.task.ended(chosen.tokens) | (count >= search.task.max_length)
    finished = finished | (over & (count >= 1))
    return replace(
        search,
        tokens=tokens,
        scores=chosen.scores,
        finished=finished,
        at=search.at + 1,
        kept=kept,
    )


def _refuse_frames(sampler: Sampler) -> None:
    if isinstance(sampler, FrameSampler):
        raise ZooError(
            f"sampler '{sampler.name}' reads all frames at once, but a decoder speaks token by "
            "token; choose one that does, for example greedy or beam"
        )


def _refuse_silence(scores: Tensor) -> None:
    """ZooError if an item has no possible continuation."""
    silent = scores[:, 0].isneginf()
    if bool(silent.any()):
        item = int(silent.int().argmax())
        raise ZooError(
            f"nothing can be said for item {item}: every next token is impossible, "
            "by the decoder's logits or by the filters"
        )
