"""Tagger: one or more labels for each position."""

from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Embedding,
    Encoder,
    InvalidParameter,
    OutputSchema,
    TensorSchema,
    forbid_stochastic,
    rename_params,
)
from zoo_memory.position_layer import PositionLayer


class Tagger(Model):
    r"""Tagger: embedding, encoder and a linear layer at each position.

    .. math:: z_t = W h_t + b

    where h are the encoder states, or the results of the inner layer.

    Paper: Graves et al. 2014, section 4.1, where the labels are bits to copy; Devlin et al. 2019,
    section 5.3, where they are names.

    Args:
        source: embedding of the inputs.
        encoder: encoder of the inputs.
        labels: number of labels.
        multi_label: whether a position can have any number of labels (objective
            `binary-cross-entropy`) instead of exactly one (`cross-entropy`).
        dropout: dropout probability of the states that the output layer takes.
        inner: dense layer of each state before the output layer; none if not set.
        words: whether the labels are those of words, which have one or more tokens: h is the state
            of the first token of each word, at ``starts`` (preprocessor `words`).
        align: of words, the tokens that have the label of a word in training: its first one, or all
            of them, up to ``ends``. In evaluation it is the first one.

    Shapes:
        batch {source, target [B, S], or [B, S, labels] of 0 and 1 with multi_label; optional mask
        [B, S], True where the loss is computed} -> logits [B, S, labels]. With words, S is W, the
        number of words, except in source; starts [B, W] are the first tokens, padded with -1. With
        ``align: all``, ends [B, W] are the last tokens, and logits in training [B, S, labels].
    """

    name: ClassVar[str] = "tagger"
    loss_only: ClassVar[tuple[str, ...]] = ("target",)
    version: ClassVar[int] = 2
    paper: ClassVar[str] = (
        "Graves, Wayne and Danihelka 2014, Neural Turing Machines, arXiv:1410.5401"
    )

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        labels: Annotated[int, Field(ge=1)],
        multi_label: bool = False,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        words: bool = False,
        align: Literal["first", "all"] = "first",
        inner: Blueprint[PositionLayer] | None = None,
    ) -> None:
        super().__init__()
        if align == "all" and not words:
            raise InvalidParameter("align", "'align: all' is for labels of words; set words: true")
        self.words, self.align = words, align
        self.labels = labels
        self.multi_label = multi_label
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        width = self.encoder.output_dim
        self.inner = None if inner is None else inner.build(input_dim=width)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(width if self.inner is None else self.inner.output_dim, labels)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, several="multi_label")
        return params, tensors

    def forward(self, batch: Batch) -> Outputs:
        memory = self.encoder(self.source(batch["source"]), self.source.mask(batch["source"]))
        states, mask, loss_mask = memory.states, memory.mask, batch.get("mask")
        if self.training and self.align == "all":
            return self._label_all_tokens(states, batch)
        if self.words:
            starts = batch["starts"]  # [B, W]
            index = starts.clamp(min=0)[..., None].expand(-1, -1, states.shape[-1])
            states, mask = states.gather(1, index), starts >= 0  # [B, W, D]
        states = states if self.inner is None else self.inner(states)
        mask = mask if loss_mask is None else mask & loss_mask
        return Outputs(self.out(self.dropout(states)), batch["target"], mask)

    def _label_all_tokens(self, states: Tensor, batch: Batch) -> Outputs:
        """Return an output for each token of states [B, S, D], with the label of its word."""
        starts, ends, targets = batch["starts"], batch["ends"], batch["target"]
        tokens = torch.arange(states.shape[1], device=states.device)[:, None]
        inside = (starts[:, None] <= tokens) & (tokens <= ends[:, None])  # [B, S, W]
        mask, word = (inside & (starts[:, None] >= 0)).max(dim=-1)  # [B, S]
        if self.multi_label:
            index = word[..., None].expand(-1, -1, targets.shape[-1])
            targets = targets.gather(1, index)
        else:
            targets = targets.gather(1, word)
        if (loss_mask := batch.get("mask")) is not None:
            mask = mask & loss_mask.gather(1, word)
        return Outputs(self.out(self.dropout(states)), targets, mask)

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        dims = ("B", "W" if self.words else "S")
        target = TensorSchema(dims, "integer", below=self.labels, minimum=None)
        if self.multi_label:
            target = TensorSchema((*dims, self.labels))
        schema = {
            "source": self.source.input_schema(),
            "target": target._replace(optional=inference),
            "mask": TensorSchema(dims, "bool", optional=True),
        }
        for key in self._position_keys():
            schema[key] = TensorSchema(dims, "integer", below="S", minimum=None, pad=-1)
        return schema

    def _position_keys(self) -> list[str]:
        return [*(["starts"] if self.words else []), *(["ends"] if self.align == "all" else [])]

    def output_schema(self) -> OutputSchema:
        targets: Literal["class", "multi-label"] = "multi-label" if self.multi_label else "class"
        return OutputSchema(logits="position", targets=targets)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        positions = self.source.mask(source).shape
        shape = (*positions, self.labels) if self.multi_label else positions
        device = generator.device if generator else source.device
        high = 2 if self.multi_label else self.labels
        targets = torch.randint(0, high, shape, generator=generator, device=device)
        dtype = self.out.weight.dtype if self.multi_label else None
        example = {"source": source, "target": targets.to(source.device, dtype)}
        every = torch.arange(positions[1], device=source.device).expand(positions)
        return example | dict.fromkeys(self._position_keys(), every)
