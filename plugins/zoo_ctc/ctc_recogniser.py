"""CTC recogniser: a label or none for every frame."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, GenerationOutput, Outputs, ZooError
from zoo.plugin import (
    Blueprint,
    Embedding,
    Encoder,
    Filter,
    GenerationInputs,
    Memory,
    Sampler,
    forbid_stochastic,
)
from zoo_ctc.frame_model import FrameModel, random_labels, require_frame_sampler, valid_labels


class CtcRecogniser(FrameModel):
    r"""Says at every frame which label it is, or blank; the labels need no alignment.

    .. math:: p_t(k) = \mathrm{softmax}(W h_t + b)_k, \qquad h = \mathrm{encode}(x)

    Paper: Graves et al. 2006, section 3.

    Args:
        source: embedding of what is read; its vectors are the frames.
        encoder: reads them.
        vocab: how many symbols there are, the blank included.
        blank: the symbol that stands for no label.
        padding: what fills targets and transcriptions after their last label; the blank if not
            set, which no label can be.

    Shapes:
        batch {source, target [B, U], padded} -> logits [B, T, vocab] beside targets [B, U]; T as
        many as the embedding gives vectors. To generate, batch {source}.
    """

    name: ClassVar[str] = "ctc-recogniser"
    generation_input: ClassVar[str | None] = "source"
    paper: ClassVar[str] = (
        "Graves et al. 2006, Connectionist Temporal Classification: Labelling Unsegmented "
        "Sequence Data with Recurrent Neural Networks"
    )

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        vocab: Annotated[int, Field(ge=2)],
        blank: Annotated[int, Field(ge=0)] = 0,
        padding: Annotated[int, Field(ge=0)] | None = None,
    ) -> None:
        super().__init__()
        if blank >= vocab:
            raise ZooError(f"blank ({blank}) must be a symbol below vocab ({vocab})")
        self.blank = blank
        self.pad = blank if padding is None else padding
        self.eos = self.pad  # where a transcription's padding begins, it has ended
        self.labels = valid_labels(vocab, blank=blank, padding=self.pad)
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        self.out = nn.Linear(self.encoder.output_dim, vocab)

    def forward(self, batch: Batch) -> Outputs:
        logits, mask = self.frames(batch["source"])
        targets = batch["target"]
        return Outputs(logits, targets, mask, target_mask=targets != self.pad)

    def frames(self, source: Tensor) -> tuple[Tensor, Tensor]:
        memory: Memory = self.encoder(self.source(source), self.source.mask(source))
        return self.out(memory.states), memory.mask

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        target = random_labels(batch, length, self.labels, generator)
        return {"source": source, "target": target.to(source.device)}

    def generate(
        self,
        batch: Batch,
        sampler: Sampler,
        *,
        max_length: int,
        generator: torch.Generator | None = None,
        filters: Sequence[Filter] = (),
    ) -> GenerationOutput:
        """The labels of each item, at most max_length of them, read off all frames at once."""
        frame_sampler = require_frame_sampler(sampler, self.name)
        return self.read(batch["source"], frame_sampler, max_length, filters)

    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        raise ZooError(f"model '{self.name}' says all its frames at once, so there is no stream")

    def get_embedding(self, side: str) -> Embedding:
        if side == "source":
            return self.source
        raise ZooError(f"model '{self.name}' looks no label up, so it has no target embedding")

    def vocab_size(self, side: str) -> int:
        return self.out.out_features if side == "target" else super().vocab_size(side)
