"""Hierarchical encoder over words and sentences."""

from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo.plugin import Blueprint, Encoder, FromParent, Memory


class HierarchicalEncoder(Encoder):
    r"""Hierarchical encoder: one encoder over the words of each sentence, one over the sentences.

    .. math:: h_w = \mathrm{words}(x)_w, \quad g_k = \mathrm{sentences}(\mathrm{summary}_1, \ldots,
        \mathrm{summary}_K)_k, \quad \text{state}_w = [h_w; g_{k(w)}]

    Paper: Li et al. 2015, section 3.3; here every sentence has a fixed number of words. The
    caller must pad each sentence to `span` words, so padding can occur between valid positions.

    Args:
        input_dim: width of the inputs.
        words: encoder of the words of a sentence.
        sentences: encoder of the sentence summaries.
        span: number of words in a sentence.
        states: 'words' returns [h_w; g_k] for each word, 'sentences' only g_k, for the decoder
            `hierarchical`.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, words.output_dim +
        sentences.output_dim], or [B, S, sentences.output_dim] with states 'sentences'.
    """

    name: ClassVar[str] = "hierarchical"
    paper: ClassVar[str] = (
        "Li et al. 2015, A Hierarchical Neural Autoencoder for Paragraphs and Documents, "
        "arXiv:1506.01057"
    )

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        words: Blueprint[Encoder],
        sentences: Blueprint[Encoder],
        span: Annotated[int, Field(ge=1, le=128)] = 16,
        states: Literal["words", "sentences"] = "words",
    ) -> None:
        super().__init__()
        self.input_dim = input_dim
        self.span = span
        self.states = states
        self.words = words.build(input_dim=input_dim)
        self.sentences = sentences.build(input_dim=self.words.summary_dim)
        self.output_dim = self.sentences.output_dim
        if states == "words":
            self.output_dim += self.words.output_dim
        self.summary_dim = self.sentences.summary_dim
        self.carry = self.sentences.carry

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        B, S, D = inputs.shape
        padding = -S % self.span
        K = (S + padding) // self.span  # number of sentences
        words = F.pad(inputs, (0, 0, 0, padding)).view(B * K, self.span, D)
        word_mask = F.pad(mask, (0, padding)).view(B * K, self.span)
        word_memory = self.words(words, word_mask)
        sentence_mask = word_mask.any(dim=1).view(B, K)
        sentence_memory = self.sentences(word_memory.summary.view(B, K, -1), sentence_mask)
        states = sentence_memory.states.repeat_interleave(self.span, dim=1)[:, :S]
        if self.states == "words":
            word_states = word_memory.states.view(B, K * self.span, -1)[:, :S]
            states = torch.cat([word_states, states], dim=-1)
        return Memory(
            states * mask[..., None], mask, sentence_memory.summary, sentence_memory.carry
        )
