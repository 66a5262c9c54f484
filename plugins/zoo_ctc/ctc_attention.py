"""Joint CTC and attention model."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, GenerationOutput, Outputs, record_samples
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Decoder,
    DecodeRequest,
    Embedding,
    Encoder,
    Filter,
    GenerationInputs,
    Memory,
    OutputSchema,
    Sampler,
    decode,
    find_stochastic,
    forbid_stochastic,
)
from zoo_ctc.frame_model import FrameModel, excluded_labels, frame_logprobs, random_labels
from zoo_ctc.joint_ctc_search import JointCtcSearch


class CtcAttention(FrameModel):
    r"""Encoder–decoder model with attention and a CTC head on the encoder.

    .. math::
        h = \mathrm{encode}(x), \quad p(y \mid x) = \prod_t p(y_t \mid y_{<t}, h), \quad
        p_s(k) = \mathrm{softmax}(W h_s + b)_k

    where p_s(k) is the probability of label k at frame s. Returns the outputs of the decoder; the
    outputs of the CTC head are in ``auxiliary["ctc"]``. The labels of the CTC head are the target
    without bos and eos; the blank has the token ID of the padding. A frame sampler decodes the
    outputs of the CTC head, joint-ctc-search uses both heads, and any other sampler generates with
    the decoder.

    Paper: Kim et al. 2017, section 2.3; Watanabe et al. 2017, section III.

    Args:
        source: embedding of the input; its vectors are the frames.
        encoder: encoder of the frames.
        decoder: decoder that attends to the encoder states.
        target: embedding of the target.
        bos: token ID before the first target token; may equal that of the padding.
        eos: token ID after the last target token.

    Shapes:
        batch {source, target [B, T] from bos to eos, padded} -> logits [B, T - 1, V], and "ctc"
        with logits [B, S, V] and targets [B, T - 1]; S is the number of frames. For generation,
        batch {source}.
    """

    name: ClassVar[str] = "ctc-attention"
    paper: ClassVar[str] = (
        "Kim et al. 2017, Joint CTC-Attention based End-to-End Speech Recognition using Multi-task "
        "Learning, arXiv:1609.06773"
    )

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        decoder: Blueprint[Decoder],
        target: Blueprint[Embedding],
        bos: Annotated[int, Field(ge=0)] = 1,
        eos: Annotated[int, Field(ge=0)] = 2,
    ) -> None:
        super().__init__()
        self.bos: int = bos
        self.eos: int = eos
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        embedding = target.build()
        self.blank = self.pad = embedding.validate_special_tokens(bos=bos, eos=eos)
        vocab = embedding.vocab or 0
        self.excluded_ids = excluded_labels(vocab, padding=self.pad, bos=bos, eos=eos)
        self.decoder = decoder.build(
            embedding=embedding,
            memory_dim=self.encoder.output_dim,
            summary_dim=self.encoder.summary_dim,
            carry=self.encoder.carry,
        )
        self.is_stochastic = find_stochastic(self.decoder) is not None
        self.ctc = nn.Linear(self.encoder.output_dim, vocab)

    def encode(self, source: Tensor) -> Memory:
        memory: Memory = self.encoder(self.source(source), self.source.mask(source))
        return memory

    def forward(self, batch: Batch) -> Outputs:
        decoder_inputs, targets = batch["target"][:, :-1], batch["target"][:, 1:]
        memory = self.encode(batch["source"])
        decoder_outputs = self._decoder_outputs(decoder_inputs, targets, memory)
        is_label = (targets != self.pad) & (targets != self.eos)
        ctc_outputs = Outputs(self.ctc(memory.states), targets, memory.mask, target_mask=is_label)
        return replace(decoder_outputs, auxiliary={"ctc": ctc_outputs})

    def _decoder_outputs(self, decoder_inputs: Tensor, targets: Tensor, memory: Memory) -> Outputs:
        if not self.is_stochastic:
            return Outputs(self.decoder(decoder_inputs, memory), targets, targets != self.pad)
        with record_samples(self.decoder) as log:
            logits = self.decoder(decoder_inputs, memory)
        return Outputs(logits, targets, targets != self.pad, log.total())

    def frame_logits(self, source: Tensor) -> tuple[Tensor, Tensor]:
        memory = self.encode(source)
        return self.ctc(memory.states), memory.mask

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        target = self.get_embedding("target").input_schema().with_dims("B", "T")
        return {
            "source": self.source.input_schema(),
            "target": target._replace(
                optional=inference, pad=self.pad, prefix=(self.bos,), suffix=(self.eos,)
            ),
        }

    def output_schema(self) -> OutputSchema:
        return OutputSchema(
            logits="token",
            samples=self.is_stochastic,
            trained_by=(("ctc",), *((("samples",),) if self.is_stochastic else ())),
            auxiliary={"ctc": self.frame_schema()},
            decoding=("step", "frame", "joint"),
        )

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        labels = random_labels(
            batch,
            length,
            vocab=self.ctc.out_features,
            excluded=self.excluded_ids,
            generator=generator,
        )
        bos, eos = (labels.new_full((batch, 1), token) for token in (self.bos, self.eos))
        target = torch.cat([bos, labels, eos], dim=1)
        return {"source": source, "target": target.to(source.device)}

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
        if not isinstance(sampler, JointCtcSearch):
            return super().generate(
                batch, sampler, max_length=max_length, generator=generator, filters=filters
            )
        self.check_batch(batch, inference=True)
        memory = self.encode(batch["source"])
        logprobs = frame_logprobs(self.ctc(memory.states), memory.mask)
        request = DecodeRequest(
            sampler=sampler.with_frames(logprobs, memory.mask, blank=self.blank),
            max_length=max_length,
            generator=generator,
            filters=filters,
        )
        return decode(self._generation_inputs(memory), request)

    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        return self._generation_inputs(self.encode(batch["source"]))

    def _generation_inputs(self, memory: Memory) -> GenerationInputs:
        return GenerationInputs(self.decoder, memory, bos=self.bos, eos=self.eos, pad=self.pad)

    def get_embedding(self, side: str) -> Embedding:
        if side == "source":
            return self.source
        embedding: Embedding = self.decoder.embedding  # type: ignore[assignment]
        return embedding
