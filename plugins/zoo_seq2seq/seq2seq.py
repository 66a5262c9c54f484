"""Sequence-to-sequence model."""

from dataclasses import replace
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import Batch, Model, Outputs, ZooError, record_samples, recording
from zoo.plugin import (
    Attention,
    BatchSchema,
    Blueprint,
    Decoder,
    Embedding,
    Encoder,
    GenerationInputs,
    Memory,
    OutputSchema,
    find_stochastic,
    forbid_stochastic,
    rename_params,
)


class Seq2Seq(Model):
    r"""Sequence-to-sequence model: an encoder of the source and an autoregressive decoder.

    .. math:: p(y \mid x) = \prod_t p(y_t \mid y_{<t}, \mathrm{encode}(x))

    Paper: Sutskever et al. 2014, equation 1.

    Args:
        source: source embedding.
        encoder: encoder of the source.
        decoder: decoder of the target.
        target: target embedding; a second embedding like the source's if not set.
        shared: use the source embedding for the target too.
        bos: token ID that starts a target; may be the padding.
        eos: token ID that ends a target; also the padding of targets, if their embedding has none.
        prompt: token IDs that follow bos in every target, such as a language or a task. In
            generation, the key 'prompt' of the batch replaces them.
        generates_padding: whether the padding token can be generated, as any other token.
        return_attention: return the attention weights of the decoder, averaged over heads, for an
            objective that uses them.

    Shapes:
        batch {source [B, S], target [B, T] from bos to eos, padded} -> logits [B, T - 1, V];
        in generation optionally prompt [B, P], without bos;
        with return_attention, extras attention_weights [B, T - 1, S] and source_mask [B, S].
    """

    name: ClassVar[str] = "seq2seq"
    version: ClassVar[int] = 2
    generation_input: ClassVar[str | None] = "source"
    paper: ClassVar[str] = (
        "Sutskever et al. 2014, Sequence to Sequence Learning with Neural Networks, arXiv:1409.3215"
    )

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        decoder: Blueprint[Decoder],
        target: Blueprint[Embedding] | None = None,
        shared: bool = False,
        bos: Annotated[int, Field(ge=0)] = 1,
        eos: Annotated[int, Field(ge=0)] = 2,
        prompt: list[Annotated[int, Field(ge=0)]] | None = None,
        generates_padding: bool = False,
        return_attention: bool = False,
    ) -> None:
        super().__init__()
        self.shared = shared
        self.bos: int = bos
        self.eos: int = eos
        self.prompt = tuple(prompt or ())
        self.generates_padding = generates_padding
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        if shared and target is not None:
            raise ZooError("'target' cannot be set with shared: true, which uses 'source' for both")
        embedding = self.source if shared else (target or source).build()
        self.pad = embedding.validate_special_tokens(bos=bos, eos=eos)
        vocab = embedding.vocab or 0
        if max(self.prompt, default=0) >= vocab:
            raise ZooError(f"prompt ({max(self.prompt)}) must be less than vocab ({vocab})")
        self.decoder = decoder.build(
            embedding=embedding,
            memory_dim=self.encoder.output_dim,
            summary_dim=self.encoder.summary_dim,
            carry=self.encoder.carry,
        )
        if self.decoder.needs_source_tokens:
            _require_shared_vocabulary(self.decoder, self.source, embedding)
        self.is_stochastic = find_stochastic(self.decoder) is not None
        self.return_attention = return_attention
        if return_attention:
            _require_single_attention(self.decoder)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, looks="return_attention")
        return params, tensors

    def encode(self, source: Tensor) -> Memory:
        """Encode the source [B, S]."""
        memory: Memory = self.encoder(self.source(source), self.source.mask(source))
        if self.source.vocab is None:
            return memory
        tokens = source if source.dim() == 2 else source[..., 0]  # without segments
        return replace(memory, tokens=tokens)

    def forward(self, batch: Batch) -> Outputs:
        inputs, targets = batch["target"][:, :-1], batch["target"][:, 1:]
        memory = self.encode(batch["source"])
        if not self.return_attention:
            return self._outputs(inputs, targets, memory)
        with recording(self.decoder, gradients=True) as log:
            outputs = self._outputs(inputs, targets, memory)
        (calls,) = log.values()
        weights = torch.cat(calls, dim=2).mean(dim=1)  # [B, T, S]
        return replace(outputs, extras={"attention_weights": weights, "source_mask": memory.mask})

    def _outputs(self, inputs: Tensor, targets: Tensor, memory: Memory) -> Outputs:
        if not self.is_stochastic:
            return Outputs(self.decoder(inputs, memory), targets, self.target_mask(targets))
        with record_samples(self.decoder) as log:
            logits = self.decoder(inputs, memory)
        return Outputs(logits, targets, self.target_mask(targets), log.total())

    def target_mask(self, targets: Tensor) -> Tensor:
        """Return where targets [B, T], without bos, are not padding."""
        if self.pad != self.eos:
            return targets != self.pad
        ends = (targets == self.eos).long()
        return ends.cumsum(dim=1) - ends == 0  # up to the first eos

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        target = self._target_embedding().input_schema().with_dims("B", "T")
        prefix = (self.bos, *self.prompt)
        schema = {
            "source": self.source.input_schema(),
            "target": target._replace(
                optional=inference, pad=self.pad, prefix=prefix, suffix=(self.eos,)
            ),
        }
        if inference:
            schema["prompt"] = target.with_dims("B", "P")._replace(optional=True)
        return schema

    def output_schema(self) -> OutputSchema:
        return OutputSchema(
            logits="token",
            samples=self.is_stochastic,
            trained_by=(("samples",),) if self.is_stochastic else (),
            extras=("attention_weights", "source_mask") if self.return_attention else (),
            decoding=("step",),
        )

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        return {
            "source": source,
            "target": self._target_embedding().example(batch, length + 2, generator),
        }

    @torch.no_grad()
    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        return self.generation_inputs(self.encode(batch["source"]), batch.get("prompt"))

    def generation_inputs(self, memory: Memory, prompt: Tensor | None = None) -> GenerationInputs:
        """Return the inputs of the decoding loop for an encoded source and a prompt [B, P]."""
        B, device = memory.states.shape[0], memory.states.device
        if prompt is None and self.prompt:
            prompt = torch.tensor(self.prompt, device=device).expand(B, -1)
        if prompt is not None:
            prompt = torch.cat([torch.full((B, 1), self.bos, device=device), prompt], dim=1)
        return GenerationInputs(
            self.decoder,
            memory,
            bos=self.bos,
            eos=self.eos,
            pad=self.pad,
            prompt=prompt,
            generates_padding=self.generates_padding,
        )

    def get_embedding(self, side: str) -> Embedding:
        return self.source if side == "source" else self._target_embedding()

    def _target_embedding(self) -> Embedding:
        embedding: Embedding = self.decoder.embedding  # type: ignore[assignment]
        return embedding


def _require_shared_vocabulary(decoder: Decoder, source: Embedding, target: Embedding) -> None:
    if source.vocab is None or source.vocab != target.vocab:
        raise ZooError(
            f"decoder '{decoder.name}' copies source tokens, so source and target need the same "
            f"vocabulary, but the source embedding '{source.name}' has {_size(source)} and the "
            f"target embedding '{target.name}' has {_size(target)}"
        )


def _size(embedding: Embedding) -> str:
    return "no vocabulary" if embedding.vocab is None else f"{embedding.vocab:,} tokens"


def _require_single_attention(decoder: Decoder) -> None:
    count = sum(isinstance(module, Attention) for module in decoder.modules())
    if count != 1:
        raise ZooError(
            f"return_attention: true needs a decoder with one attention, but decoder "
            f"'{decoder.name}' has {count}"
        )
