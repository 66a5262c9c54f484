"""N-gram decoder: counts instead of weights, behind the same interface."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Decoder, Embedding, FromParent, Memory, State

_EMPTY_CODE = torch.iinfo(torch.int64).max


class NGram(Decoder):
    r"""Predicts the next token from how often it followed the last few.

    .. math::
        p(w \mid h) = \frac{c(hw) + T(h)\, p(w \mid h')}{c(h) + T(h)}, \qquad p(w \mid \cdot) =
        \frac{1}{V}

    where T(h) counts the distinct tokens seen after h and h' is h without its first token
    (Witten-Bell smoothing, interpolated down to the uniform distribution). The counts are
    buffers, filled by `learn`, so the model saves and loads like any other.

    Paper: Witten and Bell 1991, method C; Chen and Goodman 1998, section 2.6.

    Args:
        embedding: the target embedding, of which only the vocabulary is used.
        order: how many tokens an n-gram has, the predicted one included.
        capacity: how many distinct n-grams of each order there is room for.

    Shapes:
        tokens [B, n] -> logits [B, n, V], which are log-probabilities.
    """

    name: ClassVar[str] = "ngram"
    paper: ClassVar[str] = (
        "Witten and Bell 1991, The Zero-Frequency Problem: Estimating the Probabilities of Novel "
        "Events in Adaptive Text Compression"
    )

    codes: Tensor
    counts: Tensor

    def __init__(
        self,
        *,
        embedding: FromParent[Embedding],
        order: Annotated[int, Field(ge=1, le=8)] = 3,
        capacity: Annotated[int, Field(ge=1)] = 100_000,
    ) -> None:
        super().__init__()
        if embedding.vocab is None:
            raise ZooError(f"embedding '{embedding.name}' has no vocabulary to predict")
        if (embedding.vocab + 1) ** order >= _EMPTY_CODE:
            raise ZooError(f"order {order} over {embedding.vocab} symbols is too much to count")
        self.embedding = embedding
        self.vocab = embedding.vocab
        self.order = order
        # An n-gram is one number, its tokens read as digits; each order's are sorted.
        self.register_buffer("codes", torch.full((order, capacity), _EMPTY_CODE))
        self.register_buffer("counts", torch.zeros(order, capacity, dtype=torch.long))

    def learn(self, tokens: Tensor, mask: Tensor) -> None:
        """Count the n-grams of sequences [B, T], each from its second token on."""
        before = self._initial_context(tokens.shape[0], tokens.device)
        contexts = torch.cat([before, tokens], dim=1).unfold(1, self.order, 1)  # [B, T + 1, order]
        grams = contexts[:, 1 : tokens.shape[1]][mask[:, 1:]]  # the last of each is predicted
        for n in range(1, self.order + 1):
            code = self._encode(grams[:, self.order - n :])
            known = self.counts[n - 1] > 0
            all_codes = torch.cat([self.codes[n - 1][known], code])
            weight = torch.cat([self.counts[n - 1][known], torch.ones_like(code)])
            unique, inverse = torch.unique(all_codes, return_inverse=True)
            if len(unique) > self.codes.shape[1]:
                raise ZooError(
                    f"{len(unique):,} distinct n-grams of order {n}, but room for "
                    f"{self.codes.shape[1]:,}; raise capacity"
                )
            self.codes[n - 1].fill_(_EMPTY_CODE)[: len(unique)] = unique
            self.counts[n - 1].zero_()[: len(unique)] = torch.zeros_like(unique).index_add(
                0, inverse, weight
            )

    def start(self, memory: Memory, *, steps: int) -> State:
        return State({"last": self._initial_context(memory.mask.shape[0], self.codes.device)})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        seen = torch.cat([state.per_hypothesis["last"], tokens], dim=1)  # [B, order - 1 + n]
        if self.order == 1:
            context = tokens[..., None][..., :0]
        else:
            context = seen.unfold(1, self.order - 1, 1)[:, 1:]  # [B, n, order - 1]
        last = seen[:, tokens.shape[1] :]
        return self._probabilities(context).log(), state.updated({"last": last})

    def _probabilities(self, context: Tensor) -> Tensor:
        """context [B, n, order - 1] -> probabilities [B, n, V]"""
        B, n, _ = context.shape
        dtype = next((p.dtype for p in self.embedding.parameters()), torch.float32)
        p = torch.full((B, n, self.vocab), 1 / self.vocab, dtype=dtype, device=context.device)
        next_tokens = torch.arange(self.vocab, device=context.device) + 1
        for k in range(1, self.order + 1):
            head = self._encode(context[..., context.shape[-1] - (k - 1) :])  # [B, n]
            query_codes = head[..., None] * (self.vocab + 1) + next_tokens  # [B, n, V]
            at = torch.searchsorted(self.codes[k - 1], query_codes).clamp(
                max=self.codes.shape[1] - 1
            )
            found = self.codes[k - 1][at] == query_codes
            counts = self.counts[k - 1][at] * found
            total, distinct = counts.sum(-1, keepdim=True), found.sum(-1, keepdim=True)
            interpolated = (counts + distinct * p) / (total + distinct).clamp(min=1)
            p = torch.where(total > 0, interpolated.to(dtype), p)
        return p

    def _encode(self, grams: Tensor) -> Tensor:
        """Tokens [..., k] as digits of one number [...]; -1 stands for 'before the start'."""
        code = torch.zeros(grams.shape[:-1], dtype=torch.long, device=grams.device)
        for k in range(grams.shape[-1]):
            code = code * (self.vocab + 1) + grams[..., k] + 1
        return code

    def _initial_context(self, batch: int, device: torch.device) -> Tensor:
        return torch.full((batch, self.order - 1), -1, dtype=torch.long, device=device)
