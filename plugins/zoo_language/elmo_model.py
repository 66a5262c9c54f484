"""Bidirectional language model of ELMo."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Embedding,
    InvalidParameter,
    OutputSchema,
    TensorSchema,
)
from zoo_language.bilm_layers import BiLMLayers


class ElmoModel(Model):
    r"""Bidirectional language model with one embedding and one softmax for both directions.

    .. math:: \sum_t \log p(y_t \mid x_{<t}; \Theta_x, \overrightarrow\Theta, \Theta_s)
        + \log p(y_t \mid x_{>t}; \Theta_x, \overleftarrow\Theta, \Theta_s)

    Paper: Peters et al. 2018, equation of section 3.1. The authors train with a sampled softmax
    and keep the LSTM states between batches; here the softmax is complete, and every sequence
    starts with states of zeros.

    Args:
        embedding: embedding of the inputs with one vector for each, for example `character-cnn`;
            its width is the width of the LSTM projections.
        lstm: LSTM layers of both directions.
        vocab: number of words to predict.

    Shapes:
        batch {source [B, T, ...], inputs of the embedding from bos to eos, padded; target [B, T],
        the word IDs of the same positions} -> logits [B, 2 (T - 1), V]: the forward logits of
        words 1..T-1, then the backward logits of words 0..T-2;
        `layer_states` {source} -> [B, T, layers + 1, 2 D].
    """

    name: ClassVar[str] = "elmo"
    loss_only: ClassVar[tuple[str, ...]] = ("target",)
    paper: ClassVar[str] = (
        "Peters et al. 2018, Deep Contextualized Word Representations, arXiv:1802.05365"
    )

    def __init__(
        self,
        *,
        embedding: Blueprint[Embedding],
        lstm: Blueprint[BiLMLayers],
        vocab: Annotated[int, Field(ge=2)],
    ) -> None:
        super().__init__()
        self.vocab = vocab
        self.embedding = embedding.build()
        dims = self.embedding.input_schema().dims
        if dims is not None and dims[1:2] != ("S",):
            raise InvalidParameter(
                "embedding",
                f"embedding '{self.embedding.name}' does not return one vector for each input, so "
                "there is no word for each vector",
            )
        self.lstm = lstm.build(dim=self.embedding.dim)
        self.out = nn.Linear(self.embedding.dim, vocab)

    def layer_states(self, batch: Batch) -> Tensor:
        """Return the states of all layers [B, T, layers + 1, 2 D]; layer 0 is the embedding twice.

        The encoder `elmo` computes their weighted sum.
        """
        source = batch["source"]
        states: Tensor = self.lstm(self.embedding(source), self.embedding.mask(source))
        return states

    def forward(self, batch: Batch) -> Outputs:
        forwards, backwards = self.layer_states(batch)[:, :, -1].chunk(2, dim=-1)  # [B, T, D]
        target = batch["target"]
        logits = self.out(torch.cat([forwards[:, :-1], backwards[:, 1:]], dim=1))
        mask = self.embedding.mask(batch["source"])[:, 1:].repeat(1, 2)
        return Outputs(logits, torch.cat([target[:, 1:], target[:, :-1]], dim=1), mask)

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        source = self.embedding.input_schema()
        target = TensorSchema(("B", "S"), "integer", below=self.vocab, optional=inference)
        return {"source": source, "target": target}

    def output_schema(self) -> OutputSchema:
        return OutputSchema(logits="token")

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.embedding.example(batch, length + 1, generator)
        device = generator.device if generator else source.device
        shape = (batch, length + 1)
        target = torch.randint(self.vocab, shape, generator=generator, device=device)
        return {"source": source, "target": target.to(source.device)}

    def get_embedding(self, side: str) -> Embedding:
        return self.embedding
