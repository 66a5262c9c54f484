"""Interface of samplers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zoo.interfaces.component import Component
from zoo.interfaces.data import GenerationOutput, Selection


@dataclass(frozen=True)
class SearchConfig:
    """Configuration of a search.

    Attributes:
        batch: number of items.
        vocab: vocabulary size.
        total_length: maximum length of prompt and generated tokens.
        max_length: maximum number of generated tokens, including eos.
        pad: ID of the padding token.
        eos_ids: IDs of the end tokens [E].
        selects_pad: whether the padding token can be selected, because it is an end token or one
            that the model generates.
    """

    batch: int
    vocab: int
    total_length: int
    max_length: int
    pad: int
    eos_ids: Tensor
    selects_pad: bool = False

    def is_eos(self, tokens: Tensor) -> Tensor:
        """Return which tokens [...] are eos."""
        return (tokens[..., None] == self.eos_ids).any(dim=-1)


@dataclass(frozen=True)
class SearchState:
    """The state of a search before the next token is selected.

    Shapes:
        tokens [B, W, total_length], starting with the prompt, valid up to column ``cur_len``;
        scores and finished [B, W]; num_generated [B], including the next token; sampler_state:
        tensors of the sampler, batch first.
    """

    task: SearchConfig
    tokens: Tensor
    scores: Tensor
    finished: Tensor
    num_generated: Tensor
    cur_len: int
    sampler_state: Mapping[str, Tensor]

    def last_tokens(self) -> Tensor:
        """Return the last token of each hypothesis, [B, W]."""
        return self.tokens[..., self.cur_len - 1]

    def seen_tokens(self) -> Tensor:
        """Return the tokens so far [B, W, cur_len]."""
        return self.tokens[..., : self.cur_len]

    def write_next(self, tokens: Tensor, values: Tensor) -> None:
        """Write values [B, n] in place to column ``cur_len`` of tokens [B, n, total_length]."""
        tokens[..., self.cur_len] = values


class Sampler(Component):
    """Selects the next token of each hypothesis, without synchronising with the device.

    Random samplers implement ``distribution``; deterministic ones implement ``select``. A sampler
    that ranks finished hypotheses, such as beam search, keeps tensors between steps and overrides
    ``init_state``, ``advance``, ``done`` and ``finish``. The decoding loop keeps finished
    hypotheses finished: pad is their only possible token.

    Laws:
        samples are reproducible with a seed and follow ``distribution``; finished hypotheses stay
        finished; a token of probability 0 is never selected, one of probability 1 always; further
        tokens of probability 0 do not change the selection.

    Attributes:
        width: number of hypotheses per item.
        groups: number of equal groups of hypotheses; in the first step only the first hypothesis of
            each group is active.
    """

    kind: ClassVar[str] = "sampler"
    decoding: ClassVar[str] = "step"
    """How it decodes: "step", in the decoding loop, "frame", or another way that models declare in
    their `OutputSchema`."""
    width: int = 1
    groups: int = 1
    min_vocab: int = 0
    """The smallest vocabulary that it can select from."""

    def distribution(self, logprobs: Tensor) -> Tensor:
        """Return the probabilities [..., V] of the next token, given logprobs [..., V]."""
        rows = logprobs.reshape(-1, 1, logprobs.shape[-1])
        selected = self.select(rows, torch.zeros_like(rows[..., 0]))
        one_hot = torch.nn.functional.one_hot(selected.tokens[:, 0], logprobs.shape[-1])
        return one_hot.view(logprobs.shape).to(logprobs)

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        """Select the next tokens, given their logprobs [B, W, V] and the scores [B, W]."""
        if type(self).distribution is Sampler.distribution:
            raise NotImplementedError(
                f"{type(self).__name__} must implement distribution or select"
            )
        tokens = _sample(self.distribution(logprobs), generator)
        token_logprobs = logprobs.gather(-1, tokens[..., None])[..., 0]
        parents = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        return Selection(tokens, parents, scores + token_logprobs)

    def init_state(self, task: SearchConfig) -> Mapping[str, Tensor]:
        """Return the sampler's tensors before the first step; raise ZooError if unsupported."""
        return {}

    def advance(
        self, logprobs: Tensor, search: SearchState, generator: torch.Generator | None = None
    ) -> tuple[Selection, Mapping[str, Tensor]]:
        """Return the selection for this step and the updated sampler state."""
        return self.select(logprobs, search.scores, generator), search.sampler_state

    def done(self, search: SearchState) -> Tensor:
        """Return which items [B] are finished."""
        return (search.finished | search.scores.isneginf()).all(dim=1)

    def finish(self, search: SearchState) -> tuple[Tensor, Tensor]:
        """Return tokens [B, N, total_length] and scores [B, N] of the hypotheses, best first."""
        return search.tokens, search.scores


def _sample(p: Tensor, generator: torch.Generator | None) -> Tensor:
    """Sample an index [...] from each distribution p [..., V]; torch.multinomial synchronises."""
    # Random numbers are slow to generate on the CPU: one per row there.
    search = _search_cumulative if p.device.type == "cpu" else _race
    return search(p, generator)


def _search_cumulative(p: Tensor, generator: torch.Generator | None) -> Tensor:
    """Sample by inversion of the cumulative sums."""
    cumulative = p.cumsum(dim=-1, dtype=torch.float64)
    u = torch.rand(*p.shape[:-1], 1, dtype=torch.float64, generator=generator, device=p.device)
    # The product stays below the sum, so the index of a probability above 0 is found.
    target = u.clamp_(max=1 - 1e-15) * cumulative[..., -1:]
    index = torch.searchsorted(cumulative, target, right=True)[..., 0]
    return index.clamp_(max=p.shape[-1] - 1)


def _race(p: Tensor, generator: torch.Generator | None) -> Tensor:
    """Sample as argmax(p / exponential noise)."""
    noise = torch.empty_like(p).exponential_(generator=generator)
    return (p / noise.clamp_(min=torch.finfo(p.dtype).tiny)).argmax(dim=-1)


class FrameSampler(Sampler):
    """Decodes labels from all frames in parallel, for models such as CTC.

    It is not used by the decoding loop: the model passes the logits of all frames.

    Laws:
        if a frame path has probability 1, its labels are returned; padding frames, and labels of
        probability 0, have no effect; labels contain neither blank nor padding; scores are sorted,
        and at most the log-probability of the labels.
    """

    decoding: ClassVar[str] = "frame"

    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        """Decode logprobs [B, T, V]; mask [B, T] is True at valid frames, which come first.

        Returns N labellings per item, tokens [B, N, U], padded; an item without frames has an
        empty labelling of score 0.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement decode_frames")
