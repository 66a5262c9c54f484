"""N-gram decoder with Witten-Bell or Kneser-Ney smoothing."""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Decoder, Embedding, FromParent, Memory, State
from zoo_language.kneser_ney import absolute_discount, interpolate

_EMPTY_CODE = torch.iinfo(torch.int64).max


class NGram(Decoder):
    r"""N-gram decoder: next-token probabilities from counts, Witten-Bell or Kneser-Ney smoothed.

    .. math::
        p_\mathrm{WB}(w \mid h) = \frac{c(hw) + T(h)\, p(w \mid h')}{c(h) + T(h)}, \qquad
        p_\mathrm{KN}(w \mid h) = \frac{\max(c(hw) - D, 0) + D\, T(h)\, p(w \mid h')}{c(h)}

    where T(h) is the number of distinct tokens that follow h, and h' is h without its first token.
    The recursion ends in the uniform distribution 1/V. For Kneser-Ney, c is the number of
    occurrences for the longest n-grams and the number of distinct preceding tokens for shorter
    ones; D = n_1 / (n_1 + 2 n_2) for each length, where n_i n-grams have the count i, and 1/2
    if n_1 is 0. The counts are buffers, filled by `fit`, and are saved with the model.

    Paper: Witten and Bell 1991, method C; Kneser and Ney 1995; Chen and Goodman 1998, sections 2.6
    and 2.7.

    Args:
        embedding: target embedding; only its vocabulary size is used.
        order: length of the n-grams, including the predicted token.
        capacity: maximum number of distinct n-grams of each length.
        smoothing: Witten-Bell, or interpolated Kneser-Ney.

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
    continuations: Tensor
    discounts: Tensor

    def __init__(
        self,
        *,
        embedding: FromParent[Embedding],
        order: Annotated[int, Field(ge=1, le=8)] = 3,
        capacity: Annotated[int, Field(ge=1)] = 100_000,
        smoothing: Literal["witten-bell", "kneser-ney"] = "witten-bell",
    ) -> None:
        super().__init__()
        if embedding.vocab is None:
            raise ZooError(
                f"embedding '{embedding.name}' is not a token embedding and has no vocabulary"
            )
        if (embedding.vocab + 1) ** order >= _EMPTY_CODE:
            raise ZooError(
                f"order ({order}) is too large for vocab ({embedding.vocab}): n-gram codes must "
                "fit in 64 bits"
            )
        self.embedding = embedding
        self.vocab = embedding.vocab
        self.order = order
        self.capacity = capacity
        self.smoothing = smoothing
        # An n-gram is stored as one integer whose digits are its tokens; codes are sorted.
        self.register_buffer("codes", torch.full((order, capacity), _EMPTY_CODE))
        self.register_buffer("counts", torch.zeros(order, capacity, dtype=torch.long))
        if smoothing == "kneser-ney":
            self.register_buffer("continuations", torch.zeros_like(self.counts))
            self.register_buffer("discounts", torch.zeros(order))

    def fit(self, tokens: Tensor, mask: Tensor) -> None:
        """Add the n-grams of sequences [B, T] to the counts; the first token is not predicted."""
        before = self._initial_context(tokens.shape[0], tokens.device)
        contexts = torch.cat([before, tokens], dim=1).unfold(1, self.order, 1)  # [B, T + 1, order]
        grams = contexts[:, 1 : tokens.shape[1]][mask[:, 1:]]  # the last token of each is predicted
        for n in range(1, self.order + 1):
            code = self._encode(grams[:, self.order - n :])
            known = self.counts[n - 1] > 0
            all_codes = torch.cat([self.codes[n - 1][known], code])
            weight = torch.cat([self.counts[n - 1][known], torch.ones_like(code)])
            unique, inverse = torch.unique(all_codes, return_inverse=True)
            if len(unique) > self.capacity:
                raise ZooError(
                    f"there are {len(unique):,} distinct n-grams of length {n}, but capacity is "
                    f"{self.capacity:,}; increase capacity"
                )
            self.codes[n - 1].fill_(_EMPTY_CODE)[: len(unique)] = unique
            self.counts[n - 1].zero_()[: len(unique)] = torch.zeros_like(unique).index_add(
                0, inverse, weight
            )
        if self.smoothing == "kneser-ney":
            self._update_continuations()

    def _update_continuations(self) -> None:
        """Compute the counts and discounts of Kneser-Ney smoothing from `codes` and `counts`."""
        self.continuations.zero_()
        self.continuations[-1] = self.counts[-1]
        for n in range(1, self.order):
            longer = self.codes[n][self.counts[n] > 0]
            # The last n tokens of an (n + 1)-gram are its code without the first digit.
            index = torch.searchsorted(self.codes[n - 1], longer % (self.vocab + 1) ** n)
            self.continuations[n - 1].index_add_(0, index, torch.ones_like(index))
        discounts = [absolute_discount(counts) for counts in self.continuations]
        self.discounts.copy_(torch.tensor(discounts))

    def start(self, memory: Memory, *, steps: int) -> State:
        return State({"last": self._initial_context(memory.mask.shape[0], self.codes.device)})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        seen = torch.cat([state.per_hypothesis["last"], tokens], dim=1)  # [B, order - 1 + n]
        if self.order == 1:
            context = tokens[..., None][..., :0]
        else:
            context = seen.unfold(1, self.order - 1, 1)[:, 1:]  # [B, n, order - 1]
        last = seen[:, tokens.shape[1] :]
        return self._logprobs(context), state.updated({"last": last})

    def _logprobs(self, context: Tensor) -> Tensor:
        """Return log-probabilities [B, n, V] after the context [B, n, order - 1]."""
        B, n, _ = context.shape
        output_dtype = next((p.dtype for p in self.embedding.parameters()), torch.float32)
        # Half precision cannot represent large counts.
        dtype = torch.promote_types(output_dtype, torch.float32)
        p = torch.full((B, n, self.vocab), 1 / self.vocab, dtype=dtype, device=context.device)
        next_tokens = torch.arange(self.vocab, device=context.device) + 1
        for k in range(1, self.order + 1):
            head = self._encode(context[..., context.shape[-1] - (k - 1) :])  # [B, n]
            query_codes = head[..., None] * (self.vocab + 1) + next_tokens  # [B, n, V]
            index = torch.searchsorted(self.codes[k - 1], query_codes).clamp(max=self.capacity - 1)
            found = self.codes[k - 1][index] == query_codes
            if self.smoothing == "kneser-ney":
                counts = self.continuations[k - 1][index] * found
                discount = self.discounts[k - 1].to(dtype)
                total, distinct = counts.sum(-1, keepdim=True), found.sum(-1, keepdim=True)
                interpolated = interpolate(counts, total, distinct, discount, p)
            else:
                counts = self.counts[k - 1][index] * found
                total, distinct = counts.sum(-1, keepdim=True), found.sum(-1, keepdim=True)
                interpolated = (counts + distinct * p) / (total + distinct).clamp(min=1)
            p = torch.where(total > 0, interpolated.to(dtype), p)
        return p.log().to(output_dtype)

    def _encode(self, grams: Tensor) -> Tensor:
        """Encode tokens [..., k] as integers [...]; -1 is a position before the start."""
        code = torch.zeros(grams.shape[:-1], dtype=torch.long, device=grams.device)
        for k in range(grams.shape[-1]):
            code = code * (self.vocab + 1) + grams[..., k] + 1
        return code

    def _initial_context(self, batch: int, device: torch.device) -> Tensor:
        return torch.full((batch, self.order - 1), -1, dtype=torch.long, device=device)
