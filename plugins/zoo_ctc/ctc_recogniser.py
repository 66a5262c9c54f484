"""CTC recogniser."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Outputs, ZooError
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Embedding,
    Encoder,
    GenerationInputs,
    Memory,
    OutputSchema,
    TensorSchema,
    forbid_stochastic,
)
from zoo_ctc.frame_model import FrameModel, excluded_labels, random_labels


class CtcRecogniser(FrameModel):
    r"""CTC recogniser: embedding, encoder and a linear layer over labels and blank at each frame.

    .. math:: p_t(k) = \mathrm{softmax}(W h_t + b)_k, \qquad h = \mathrm{encode}(x)

    Paper: Graves et al. 2006, section 3.

    Args:
        source: embedding of the input; its vectors are the frames.
        encoder: encoder of the frames.
        vocab: number of labels, including the blank.
        blank: label ID of the blank.
        padding: label ID that pads targets and outputs; by default the blank.

    Shapes:
        batch {source, target [B, U], padded} -> logits [B, T, vocab] and targets [B, U]; T is the
        number of frames. For generation, batch {source}.
    """

    name: ClassVar[str] = "ctc-recogniser"
    loss_only: ClassVar[tuple[str, ...]] = ("target",)
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
            raise ZooError(f"blank ({blank}) must be less than vocab ({vocab})")
        self.blank = blank
        self.pad = blank if padding is None else padding
        self.eos = self.pad  # outputs end at the first padding
        self.vocab = vocab
        self.excluded_ids = excluded_labels(vocab, blank=blank, padding=self.pad)
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        self.out = nn.Linear(self.encoder.output_dim, vocab)

    def forward(self, batch: Batch) -> Outputs:
        logits, mask = self.frame_logits(batch["source"])
        targets = batch["target"]
        return Outputs(logits, targets, mask, target_mask=targets != self.pad)

    def frame_logits(self, source: Tensor) -> tuple[Tensor, Tensor]:
        memory: Memory = self.encoder(self.source(source), self.source.mask(source))
        return self.out(memory.states), memory.mask

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        below = max(self.vocab, self.pad + 1)
        target = TensorSchema(("B", "U"), "integer", below=below, optional=inference, pad=self.pad)
        return {"source": self.source.input_schema(), "target": target}

    def output_schema(self) -> OutputSchema:
        return self.frame_schema(decoding=("frame",))

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        target = random_labels(
            batch, length, vocab=self.vocab, excluded=self.excluded_ids, generator=generator
        )
        return {"source": source, "target": target.to(source.device)}

    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        raise ZooError(
            f"model '{self.name}' decodes all frames in parallel and does not generate token by "
            "token; use a frame sampler, for example ctc-greedy, without streaming"
        )

    def get_embedding(self, side: str) -> Embedding:
        if side == "source":
            return self.source
        raise ZooError(f"model '{self.name}' has no target embedding")

    def vocab_size(self, side: str) -> int:
        return self.out.out_features if side == "target" else super().vocab_size(side)
