"""What the models with a CTC head share: frames to labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from zoo import Batch, GenerationOutput, Model, ZooError
from zoo.plugin import Filter, FrameSampler, Sampler
from zoo_ctc.align import ForcedAlignment, align


class FrameModel(Model):
    """A model whose frames say a label or the blank; how they come about is the child's.

    blank stands for no label, pad fills labels up, labels are the symbols that can be said.
    """

    blank: int
    pad: int
    labels: Sequence[int]

    @abstractmethod
    def frames(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """source -> logits [B, T, V] and which frames are real [B, T]."""

    @torch.no_grad()
    def align(self, batch: Batch) -> ForcedAlignment:
        """Where each label of the targets lies along the frames."""
        said = self(batch)
        said = said.parts.get("ctc", said)
        return align(said.logits, said.mask, said.targets, said.target_mask, blank=self.blank)

    @torch.no_grad()
    def read(
        self, source: Tensor, sampler: FrameSampler, max_length: int, filters: Sequence[Filter]
    ) -> GenerationOutput:
        """What the sampler reads off the frames, cut after max_length labels.

        Symbols that are neither blank nor labels, such as the padding, are never read.
        """
        if filters:
            names = ", ".join(f"'{each.name}'" for each in filters)
            raise ZooError(f"filters ({names}) act before each token, but frames are read at once")
        if max_length < 1:
            raise ZooError(f"max_length is {max_length}; it must be at least 1")
        logits, mask = self.frames(source)
        logprobs = logits.float().log_softmax(dim=-1)
        if bool(logprobs[mask].isnan().any()):
            raise ZooError("the frames' logits are no numbers (NaN or inf)")
        excluded = torch.ones(logprobs.shape[-1], dtype=torch.bool, device=logprobs.device)
        excluded[[self.blank, *self.labels]] = False
        logprobs = logprobs.masked_fill(excluded, float("-inf"))
        decoded = sampler.decode_frames(logprobs, mask, blank=self.blank, pad=self.pad)
        impossible = decoded.scores[:, 0].isneginf()
        if bool(impossible.any()):
            item = int(impossible.int().argmax())
            raise ZooError(
                f"nothing can be said for item {item}: every labelling is impossible, by the "
                "frames or by the language model"
            )
        return GenerationOutput(decoded.tokens[..., :max_length], decoded.scores)


def require_frame_sampler(sampler: Sampler, model: str) -> FrameSampler:
    """The sampler, or ZooError if it is one that goes from token to token."""
    if not isinstance(sampler, FrameSampler):
        raise ZooError(
            f"sampler '{sampler.name}' chooses token by token, but model '{model}' says all its "
            "frames at once; choose one that reads frames, for example ctc-greedy"
        )
    return sampler


def valid_labels(vocab: int, **excluded: int) -> list[int]:
    """The symbols that can be labels, or ZooError if there is none beside those barred by name."""
    found = [symbol for symbol in range(vocab) if symbol not in excluded.values()]
    if not found:
        names = ", ".join(f"{name} ({symbol})" for name, symbol in excluded.items())
        raise ZooError(f"vocab ({vocab}) has no symbol for a label beside {names}")
    return found


def random_labels(
    batch: int, length: int, labels: Sequence[int], generator: torch.Generator | None
) -> Tensor:
    """Some of the labels, half as many as the frames, which can spell them even if all repeat."""
    device = generator.device if generator else None
    shape = (batch, (length + 1) // 2)
    indices = torch.randint(0, len(labels), shape, generator=generator, device=device)
    return torch.tensor(labels, device=indices.device)[indices]
