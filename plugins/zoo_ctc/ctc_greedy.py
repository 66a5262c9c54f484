"""CTC greedy (best path) decoding."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo import GenerationOutput
from zoo.plugin import FrameSampler


class CtcGreedy(FrameSampler):
    r"""CTC greedy decoding: most probable label of each frame, repeats merged, blanks removed.

    .. math:: y = \mathcal{B}(\pi), \qquad \pi_t = \arg\max_k \log p_t(k)

    The score is the log-probability of this path, a lower bound of that of the labels.

    Paper: Graves et al. 2006, section 3.2, best path decoding.

    Shapes:
        logprobs [B, T, V], mask [B, T] -> tokens [B, 1, U], scores [B, 1].
    """

    name: ClassVar[str] = "ctc-greedy"
    paper: ClassVar[str] = (
        "Graves et al. 2006, Connectionist Temporal Classification: Labelling Unsegmented "
        "Sequence Data with Recurrent Neural Networks"
    )

    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        best, path = logprobs.max(dim=-1)  # [B, T]
        previous = torch.nn.functional.pad(path, (1, 0), value=blank)[:, :-1]
        is_emitted = (path != blank) & (path != previous) & mask
        count = is_emitted.sum(dim=1)  # [B]
        longest = max(int(count.max()), 1) if count.numel() else 1
        # Frames that emit no label are written to an extra last column.
        position = torch.where(is_emitted, is_emitted.cumsum(dim=1) - 1, longest)
        tokens = path.new_full((len(path), longest + 1), pad).scatter(1, position, path)
        return GenerationOutput(
            tokens[:, None, :longest], best.masked_fill(~mask, 0.0).sum(dim=1, keepdim=True)
        )
