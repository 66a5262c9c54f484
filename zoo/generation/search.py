"""One step of the search: filters, sampler, forced prompt tokens.

Notation: B items, W hypotheses per item, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from zoo.generation.prompts import PromptBatch
from zoo.generation.request import DecodeRequest
from zoo.interfaces import Filter, Sampler, SearchConfig, SearchState, Selection, State


@dataclass(frozen=True)
class DecodeState:
    """The state of decoding after a step.

    Attributes:
        prompts: the prompts.
        search: the hypotheses and their scores.
        state: the state of the decoder.
        invalid: whether a logit of an active hypothesis was NaN or inf, [].
    """

    prompts: PromptBatch
    search: SearchState
    state: State
    invalid: Tensor


class NextTokens(NamedTuple):
    """The next token of each hypothesis.

    Attributes:
        selection: tokens, parents and scores, each [B, W].
        sampler_state: the updated tensors of the sampler.
        nan_or_inf: where the selection was made from a logit that is NaN or inf, [B, W].
    """

    selection: Selection
    sampler_state: Mapping[str, Tensor]
    nan_or_inf: Tensor


def init_search(sampler: Sampler, prompts: PromptBatch, vocab: int) -> SearchState:
    """Return the search state before the first selection."""
    B, W, device = len(prompts.prefix), sampler.width, prompts.prefix.device
    eos_ids = torch.empty(len(prompts.eos_ids), dtype=torch.long, device=device)
    for place, token in enumerate(prompts.eos_ids):
        eos_ids[place].fill_(token)  # a copy of the list would wait for the device
    task = SearchConfig(
        batch=B,
        vocab=vocab,
        total_length=prompts.total_length,
        max_length=prompts.max_length,
        pad=prompts.pad,
        eos_ids=eos_ids,
        selects_pad=prompts.selects_pad,
    )
    tokens = torch.full((B, W, prompts.total_length), prompts.pad, dtype=torch.long, device=device)
    cur_len = prompts.prefix.shape[1]
    tokens[..., :cur_len] = prompts.prefix[:, None]
    # The hypotheses of a group start equal, so only the first one is active.
    scores = torch.full((B, W), float("-inf"), device=device)
    scores[:, :: W // sampler.groups].zero_()
    finished = torch.zeros(B, W, dtype=torch.bool, device=device)
    num_generated = 1 - prompts.forced_lengths
    return SearchState(
        task, tokens, scores, finished, num_generated, cur_len, sampler.init_state(task)
    )


def select_next(
    search: SearchState, logits: Tensor, request: DecodeRequest, prompts: PromptBatch
) -> NextTokens:
    """Select the next token of each hypothesis from the decoder's logits [B, W, V]."""
    logprobs = _next_logprobs(logits, search, request)
    selection, sampler_state = request.sampler.advance(logprobs, search, request.generator)
    nan_or_inf = ~(logits.amax(dim=-1) < float("inf"))  # [B, W]; amax propagates NaN
    return force_prompts(NextTokens(selection, sampler_state, nan_or_inf), search, prompts)


def update(before: DecodeState, selected: NextTokens, state: State) -> DecodeState:
    """Return the state after a selection, given the decoder's state after its step."""
    search, parents = before.search, selected.selection.parents
    invalid = before.invalid | find_invalid(search, selected)
    if parents.shape[1] > 1:
        state = state.reorder(parent_rows(parents))
    return DecodeState(before.prompts, update_search(search, selected), state, invalid)


def find_invalid(search: SearchState, selected: NextTokens) -> Tensor:
    """Return whether a logit of an active hypothesis was NaN or inf, []."""
    active = ~(search.finished | search.scores.isneginf())
    return (selected.nan_or_inf & active).any()


def parent_rows(parents: Tensor) -> Tensor:
    """Return the rows [B * W] of the hypotheses that others continue, given parents [B, W]."""
    B, W = parents.shape
    return (torch.arange(B, device=parents.device)[:, None] * W + parents).flatten()


def _next_logprobs(logits: Tensor, search: SearchState, request: DecodeRequest) -> Tensor:
    """Return the filtered log-probabilities [B, W, V] of the next tokens."""
    task, logits = search.task, logits.float()
    if logits.shape[1] > 1:
        logits = logits.log_softmax(dim=-1)
    logits = apply_filters(request.filters, logits, search)
    logprobs = logits.log_softmax(dim=-1) if logits.shape[1] == 1 else logits
    # The log-softmax of a row of -inf is NaN.
    logprobs = logprobs.nan_to_num(nan=float("-inf"), neginf=float("-inf"))
    is_pad = torch.arange(task.vocab, device=logits.device) == task.pad
    if not task.selects_pad:
        logprobs = logprobs.masked_fill(is_pad, float("-inf"))
    # Padding is the only token of finished hypotheses.
    pad_only = torch.zeros_like(logprobs[:1, :1]).masked_fill(~is_pad, float("-inf"))
    return torch.where(search.finished[..., None], pad_only, logprobs)


def apply_filters(filters: Sequence[Filter], logits: Tensor, search: SearchState) -> Tensor:
    """Return the filtered scores [B, W, V] of the next tokens."""
    if not filters:
        return logits
    tokens = search.seen_tokens()
    for each in filters:
        filtered = each(logits, tokens)
        if each.at_max_length:
            is_last = search.num_generated >= search.task.max_length  # [B]
            filtered = torch.where(is_last[:, None, None], filtered, logits)
        logits = filtered
    return logits


def force_prompts(selected: NextTokens, search: SearchState, prompts: PromptBatch) -> NextTokens:
    """Replace the selection by the next prompt token where an item's prompt has not ended."""
    if not prompts.suffix.shape[1]:
        return selected
    selection, sampler_state, nan_or_inf = selected
    is_forced = search.num_generated < 1  # [B]
    own = torch.arange(selection.tokens.shape[1], device=is_forced.device)  # [W]
    forced = Selection(
        torch.where(is_forced[:, None], prompts.forced_tokens(search.cur_len), selection.tokens),
        torch.where(is_forced[:, None], own, selection.parents),
        torch.where(is_forced[:, None], search.scores, selection.scores),
    )
    sampler_state = {
        name: torch.where(
            is_forced.view(-1, *[1] * (updated.dim() - 1)), search.sampler_state[name], updated
        )
        for name, updated in sampler_state.items()
    }
    return NextTokens(forced, sampler_state, nan_or_inf)


def update_search(search: SearchState, selected: NextTokens) -> SearchState:
    """Return the search state after a selection."""
    selection, tokens, finished = selected.selection, search.tokens, search.finished
    if tokens.shape[1] > 1:
        tokens = tokens.gather(1, selection.parents[..., None].expand_as(tokens))
        finished = finished.gather(1, selection.parents)
    search.write_next(tokens, selection.tokens)
    num_generated = search.num_generated[:, None]
    ends = search.task.is_eos(selection.tokens) | (num_generated >= search.task.max_length)
    finished = finished | (ends & (num_generated >= 1))
    return replace(
        search,
        tokens=tokens,
        scores=selection.scores,
        finished=finished,
        num_generated=search.num_generated + 1,
        cur_len=search.cur_len + 1,
        sampler_state=selected.sampler_state,
    )
