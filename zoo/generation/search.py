"""One step of the search: filters, sampler, forced prompt tokens.

Notation: B items, W hypotheses per item, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from zoo.generation.prompts import PromptBatch
from zoo.generation.request import DecodeRequest
from zoo.interfaces import Sampler, SearchConfig, SearchState, Selection, State


@dataclass(frozen=True)
class Progress:
    """Prompts, search, state of the decoder and whether a logit was NaN or inf, after a step."""

    prompts: PromptBatch
    search: SearchState
    state: State
    invalid: Tensor

    def select(self, items: Tensor) -> Progress:
        """Return the progress of some items, given their indices [n]."""
        prompts, search, W = self.prompts, self.search, self.search.scores.shape[1]
        own = torch.arange(W, device=items.device)
        parts = {
            name: getattr(search, name).index_select(0, items)
            for name in ("tokens", "scores", "finished", "num_generated")
        }
        sampler_state = {n: t.index_select(0, items) for n, t in search.sampler_state.items()}
        return Progress(
            replace(
                prompts,
                prefix=prompts.prefix.index_select(0, items),
                suffix=prompts.suffix.index_select(0, items),
                forced_lengths=prompts.forced_lengths.index_select(0, items),
            ),
            replace(
                search,
                task=replace(search.task, batch=len(items)),
                sampler_state=sampler_state,
                **parts,
            ),
            self.state.select(items, (items[:, None] * W + own).flatten()),
            self.invalid,
        )


def parent_rows(parents: Tensor) -> Tensor:
    """Return the rows [B * W] of the hypotheses that others continue, given parents [B, W]."""
    B, W = parents.shape
    return (torch.arange(B, device=parents.device)[:, None] * W + parents).flatten()


def init_search(sampler: Sampler, prompts: PromptBatch, vocab: int) -> SearchState:
    """Return the search state before the first selection."""
    B, W, device = len(prompts.prefix), sampler.width, prompts.prefix.device
    eos_ids = torch.tensor(prompts.eos_ids, dtype=torch.long, device=device)
    pad_ends = prompts.pad in prompts.eos_ids
    task = SearchConfig(
        B, vocab, prompts.total_length, prompts.max_length, prompts.pad, eos_ids, pad_ends
    )
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


def advance_search(
    search: SearchState, logits: Tensor, request: DecodeRequest, prompts: PromptBatch
) -> tuple[SearchState, Tensor, Tensor]:
    """Select the next token of each hypothesis from the decoder's logits [B, W, V].

    Returns the updated search state, the parents [B, W], and whether a logit is NaN or inf, [].
    """
    selection, sampler_state, nan_or_inf = select_next(search, logits, request, prompts)
    active = ~(search.finished | search.scores.isneginf())
    invalid = (nan_or_inf & active).any()
    return _update_search(search, selection, sampler_state), selection.parents, invalid


def advance(progress: Progress, logits: Tensor, state: State, request: DecodeRequest) -> Progress:
    """Return the progress after a selection from the logits [B, W, V]; state is the decoder's."""
    prompts = progress.prompts
    search, parents, invalid = advance_search(progress.search, logits, request, prompts)
    if parents.shape[1] > 1:
        state = state.reorder(parent_rows(parents))
    return Progress(prompts, search, state, progress.invalid | invalid)


def select_next(
    search: SearchState, logits: Tensor, request: DecodeRequest, prompts: PromptBatch
) -> tuple[Selection, Mapping[str, Tensor], Tensor]:
    """Return the selection, the state of the sampler, and where a logit is NaN or inf, [B, W]."""
    sampler = request.sampler
    step = None if request.filters else sampler.advance_logits(logits, search)
    if step is not None:
        selection, sampler_state, nan_or_inf = step
    else:
        logprobs = _next_logprobs(logits, search, request)
        selection, sampler_state = sampler.advance(logprobs, search, request.generator)
        nan_or_inf = ~(logits.amax(dim=-1) < float("inf"))  # [B, W]; amax propagates NaN
    if prompts.suffix.shape[1]:
        selection, sampler_state = _force_prompt(selection, sampler_state, search, prompts)
    return selection, sampler_state, nan_or_inf


def _next_logprobs(logits: Tensor, search: SearchState, request: DecodeRequest) -> Tensor:
    """Return the filtered log-probabilities [B, W, V] of the next tokens."""
    task, logits = search.task, logits.float()
    if logits.shape[1] > 1:
        logits = logits.log_softmax(dim=-1)
    if request.filters:
        assert isinstance(search.cur_len, int)
        tokens = search.tokens[..., : search.cur_len]
        for each in request.filters:
            logits = each(logits, tokens)
    logprobs = logits.log_softmax(dim=-1) if logits.shape[1] == 1 else logits
    # The log-softmax of a row of -inf is NaN.
    logprobs = logprobs.nan_to_num(nan=float("-inf"), neginf=float("-inf"))
    is_pad = torch.arange(task.vocab, device=logits.device) == task.pad
    if not task.pad_ends:
        logprobs = logprobs.masked_fill(is_pad, float("-inf"))
    # Padding is the only token of finished hypotheses.
    pad_only = torch.zeros_like(logprobs[:1, :1]).masked_fill(~is_pad, float("-inf"))
    return torch.where(search.finished[..., None], pad_only, logprobs)


def _force_prompt(
    selection: Selection,
    sampler_state: Mapping[str, Tensor],
    search: SearchState,
    prompts: PromptBatch,
) -> tuple[Selection, Mapping[str, Tensor]]:
    """Replace the selection by the next prompt token where an item's prompt has not ended."""
    is_forced = search.num_generated < 1  # [B]
    step, last = search.cur_len - prompts.prefix.shape[1], prompts.suffix.shape[1] - 1
    if isinstance(step, Tensor):
        forced_tokens = prompts.suffix.index_select(1, step.clamp(max=last).view(1))  # [B, 1]
    else:
        forced_tokens = prompts.suffix[:, min(step, last), None]
    own = torch.arange(selection.tokens.shape[1], device=is_forced.device)  # [W]
    forced = Selection(
        torch.where(is_forced[:, None], forced_tokens, selection.tokens),
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
        sampler_state=sampler_state,
    )
