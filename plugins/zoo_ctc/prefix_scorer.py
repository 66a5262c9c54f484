"""CTC probabilities of label prefixes, for all hypotheses of a beam in parallel.

Notation: B batch, W hypotheses, T frames, V vocabulary including the blank.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

NEG_INF = float("-inf")


class PrefixScorer:
    """Log-probabilities that the labels of the frames start with a prefix.

    Args:
        logprobs: log-probabilities of the frames [B, T, V].
        mask: True at valid frames [B, T], which come first.
        blank: label ID of the blank.
    """

    def __init__(self, logprobs: Tensor, mask: Tensor, *, blank: int) -> None:
        # A padding frame has the blank with probability 1, which changes no probability.
        certain = logprobs.new_full((logprobs.shape[-1],), NEG_INF)
        certain[blank] = 0.0
        self.logprobs = torch.where(mask[..., None], logprobs, certain)[:, None]  # [B, 1, T, V]
        self.blank = blank

    def init_state(self, width: int) -> dict[str, Tensor]:
        """Return the state of the empty prefix for W hypotheses of each item.

        "ctc.label" and "ctc.blank" [B, W, T + 1] are the log-probabilities that the first t frames
        give the prefix and end in its last label or in the blank; "ctc.last" [B, W] is the last
        label, the blank for the empty prefix; "ctc.score" [B, W] is the score of the prefix.
        """
        blanks = F.pad(self.logprobs[..., self.blank].cumsum(dim=-1), (1, 0))  # [B, 1, T + 1]
        ends_in_blank = blanks.expand(-1, width, -1)
        score = torch.zeros_like(ends_in_blank[..., 0])
        return {
            "ctc.label": torch.full_like(ends_in_blank, NEG_INF),
            "ctc.blank": ends_in_blank.clone(),
            "ctc.last": torch.full_like(score, self.blank, dtype=torch.long),
            "ctc.score": score,
        }

    def scores(self, state: Mapping[str, Tensor], eos_ids: Tensor) -> Tensor:
        """Return the log-probability [B, W, V] of each prefix followed by each label.

        For the end tokens, it is the log-probability of the prefix as the whole labelling.
        """
        label, blank, last = state["ctc.label"], state["ctc.blank"], state["ctc.last"]
        total = torch.logaddexp(label, blank)  # [B, W, T + 1]
        extended = (total[..., :-1, None] + self.logprobs).logsumexp(dim=2)  # [B, W, V]
        # A repeated label needs a blank in between.
        repeated = (blank[..., :-1] + self._frames_of(last)).logsumexp(dim=2, keepdim=True)
        extended = extended.scatter(2, last[..., None], repeated)
        extended[..., self.blank] = NEG_INF
        extended[..., eos_ids] = total[..., -1:]
        return extended

    def extend(
        self, state: Mapping[str, Tensor], parents: Tensor, tokens: Tensor, scores: Tensor
    ) -> dict[str, Tensor]:
        """Return the state of prefixes parents [B, W] followed by tokens [B, W].

        scores [B, W, V] is the result of `scores` for the prefixes.
        """
        state = {name: value.gather(1, _expand(parents, value)) for name, value in state.items()}
        label, blank = state["ctc.label"], state["ctc.blank"]
        repeated = (tokens == state["ctc.last"])[..., None]
        entering = torch.where(repeated, blank, torch.logaddexp(label, blank))  # [B, W, T + 1]
        emission, blank_frames = self._frames_of(tokens), self.logprobs[..., self.blank]
        labels = [torch.full_like(label[..., 0], NEG_INF)]
        blanks = [labels[0]]
        for t in range(emission.shape[-1]):
            ended = torch.logaddexp(labels[-1], blanks[-1])
            labels.append(torch.logaddexp(labels[-1], entering[..., t]) + emission[..., t])
            blanks.append(ended + blank_frames[..., t])
        rows = scores.gather(1, _expand(parents, scores))
        return {
            "ctc.label": torch.stack(labels, dim=-1),
            "ctc.blank": torch.stack(blanks, dim=-1),
            "ctc.last": tokens,
            "ctc.score": rows.gather(2, tokens[..., None])[..., 0],
        }

    def _frames_of(self, tokens: Tensor) -> Tensor:
        """Return the log-probability of tokens [B, W] at each frame: [B, W, T]."""
        B, W = tokens.shape
        frames = self.logprobs.expand(B, W, -1, -1)
        index = tokens[:, :, None, None].expand(-1, -1, frames.shape[2], 1)
        return frames.gather(3, index)[..., 0]


def _expand(parents: Tensor, values: Tensor) -> Tensor:
    """Expand parents [B, W] to the shape of values [B, W, ...], for gather."""
    shape = (*parents.shape, *[1] * (values.dim() - 2))
    return parents.view(shape).expand_as(values)
