"""Base class of models with a CTC head."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from zoo import Batch, GenerationOutput, Model, Outputs, ZooError
from zoo.plugin import Filter, FrameSampler, OutputSchema, Sampler
from zoo_ctc.align import ForcedAlignment, align


class FrameModel(Model):
    """Model that classifies each frame as a label or the blank.

    Attributes:
        blank: label ID of the blank.
        pad: label ID of the padding.
        excluded_ids: IDs below the vocabulary size that are not labels; they can include the blank.
    """

    generation_input: ClassVar[str | None] = "source"
    blank: int
    pad: int
    excluded_ids: Sequence[int]

    @abstractmethod
    def frame_logits(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the logits [B, T, V] and the mask [B, T] of the frames."""

    def frame_schema(self, decoding: tuple[str, ...] = ()) -> OutputSchema:
        """Return the schema of the CTC head."""
        return OutputSchema(
            logits="frame",
            targets="sequence",
            decoding=decoding,
            constants={"blank": self.blank},
        )

    @torch.no_grad()
    def align(self, batch: Batch) -> ForcedAlignment:
        """Align the targets with the frames."""
        outputs = self(batch)
        return self._align_outputs(outputs.auxiliary.get("ctc", outputs))

    def align_frames(self, outputs: Outputs) -> Tensor:
        return self._align_outputs(outputs).labels

    def _align_outputs(self, ctc: Outputs) -> ForcedAlignment:
        assert ctc.target_mask is not None
        return align(ctc.logits, ctc.mask, ctc.targets, ctc.target_mask, blank=self.blank)

    @torch.no_grad()
    def generate(
        self,
        batch: Batch,
        sampler: Sampler,
        *,
        max_length: int,
        generator: torch.Generator | None = None,
        filters: Sequence[Filter] = (),
    ) -> GenerationOutput:
        """Decode the frames with a frame sampler, or generate token by token with any other."""
        if isinstance(sampler, FrameSampler):
            self.check_batch(batch, inference=True)
            return self._decode_frames(batch["source"], sampler, max_length, filters)
        return super().generate(
            batch, sampler, max_length=max_length, generator=generator, filters=filters
        )

    def _decode_frames(
        self, source: Tensor, sampler: FrameSampler, max_length: int, filters: Sequence[Filter]
    ) -> GenerationOutput:
        """Decode the frames, truncated to max_length labels.

        IDs that are neither the blank nor a label, such as the padding, get log-probability -inf.
        """
        if filters:
            names = ", ".join(f"'{filter_.name}'" for filter_ in filters)
            raise ZooError(
                f"filters ({names}) cannot be used with frame sampler '{sampler.name}', which "
                "decodes all frames in parallel"
            )
        if max_length < 1:
            raise ZooError(f"max_length is {max_length}, but must be at least 1")
        logits, mask = self.frame_logits(source)
        logprobs = frame_logprobs(logits, mask)
        excluded = torch.zeros(logprobs.shape[-1], dtype=torch.bool, device=logprobs.device)
        excluded[[label for label in self.excluded_ids if label != self.blank]] = True
        logprobs = logprobs.masked_fill(excluded, float("-inf"))
        decoded = sampler.decode_frames(logprobs, mask, blank=self.blank, pad=self.pad)
        impossible = decoded.scores[:, 0].isneginf()
        if bool(impossible.any()):
            item = int(impossible.int().argmax())
            raise ZooError(
                f"no valid label sequence for item {item} (all have log-probability -inf, by the "
                "frames or by the language model)"
            )
        return GenerationOutput(decoded.tokens[..., :max_length], decoded.scores)


def frame_logprobs(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the log-probabilities of logits [B, T, V], or raise ZooError if a valid one is NaN."""
    logprobs = logits.float().log_softmax(dim=-1)
    if bool(logprobs[mask].isnan().any()):
        raise ZooError("the logits of the frames contain NaN or inf")
    return logprobs


def excluded_labels(vocab: int, **excluded: int) -> list[int]:
    """Return the excluded IDs below vocab, sorted, or raise ZooError if no label is left."""
    found = sorted({label for label in excluded.values() if label < vocab})
    if len(found) == vocab:
        names = ", ".join(f"{name} ({label})" for name, label in excluded.items())
        raise ZooError(f"vocab ({vocab}) leaves no labels besides {names}")
    return found


def random_labels(
    batch: int,
    length: int,
    *,
    vocab: int,
    excluded: Sequence[int],
    generator: torch.Generator | None,
) -> Tensor:
    """Sample half as many labels as frames, so that a path exists even if all labels repeat."""
    device = generator.device if generator else None
    shape = (batch, (length + 1) // 2)
    labels = torch.randint(0, vocab - len(excluded), shape, generator=generator, device=device)
    for label in excluded:  # in ascending order
        labels = labels + (labels >= label)
    return labels
