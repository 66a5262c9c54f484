"""The values that parts hand to each other.

Letters: B batch, T target steps, S source steps, D width, H heads, L layers, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from zoo.errors import ZooError

Batch = Mapping[str, Tensor]
"""What a model reads: tensors by name, batch first."""


def full_precision(tensor: Tensor) -> Tensor:
    """The tensor in float32 if it is in half precision, as it is if not."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


@dataclass(frozen=True)
class Memory:
    """What an encoder leaves for a decoder.

    Shapes:
        states [B, S, D]; mask [B, S], True where a state is real; summary [B, Ds], one vector
        for the whole input; carry: the state a recurrent encoder ended in, each [B, L, D].
    """

    states: Tensor
    mask: Tensor
    summary: Tensor
    carry: Mapping[str, Tensor] = field(default_factory=dict)

    @classmethod
    def empty(
        cls,
        batch: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Memory:
        """The memory of a model that reads no source: B items of no states."""
        empty = torch.zeros(batch, 0, device=device, dtype=dtype)
        return cls(empty[:, :, None].expand(-1, -1, 0), empty.bool(), empty)


@dataclass(frozen=True)
class State:
    """Where a decoder stands in generation; every tensor has the batch first.

    ``per_hypothesis`` changes from step to step and follows its hypothesis; ``fixed`` depends on the
    source alone, so that choosing among hypotheses of one source never copies it.
    """

    per_hypothesis: Mapping[str, Tensor]
    per_source: Mapping[str, Tensor] = field(default_factory=dict)

    def updated(self, per_hypothesis: Mapping[str, Tensor]) -> State:
        """The same source, another step."""
        return State(per_hypothesis, self.per_source)

    def reorder(self, parents: Tensor) -> State:
        """Row i continues row parents[i]; both belong to one source. parents: [B]."""
        return self.updated({k: v.index_select(0, parents) for k, v in self.per_hypothesis.items()})

    def repeat(self, times: int) -> State:
        """Every row ``times`` times in a row, so that one source can have many hypotheses."""

        def each(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {k: v.repeat_interleave(times, dim=0) for k, v in tensors.items()}

        return State(each(self.per_hypothesis), each(self.per_source))


@dataclass(frozen=True)
class Mask:
    """Which keys a query may look at, described before it is materialised.

    Shapes:
        keys [B, S], True where a key is real; pairs [B, T, S], True where the pair is allowed;
        causal: query t sees the keys up to offset + t; bias [H, T, S], added to the scores.
    """

    keys: Tensor | None = None
    causal: bool = False
    offset: int | Tensor = 0
    pairs: Tensor | None = None
    bias: Tensor | None = None

    def dense(self, T: int, S: int, device: torch.device) -> Tensor | None:
        """The mask as one boolean tensor that broadcasts to [B, T, S], or None if all is open."""
        parts = []
        if self.keys is not None:
            parts.append(self.keys[:, None, :])  # [B, 1, S]
        if self.pairs is not None:
            parts.append(self.pairs)  # [B, T, S]
        if self.causal and not (isinstance(self.offset, int) and self.offset + 1 >= S):
            last = torch.arange(T, device=device)[:, None] + self.offset
            parts.append((torch.arange(S, device=device) <= last)[None])  # [1, T, S]
        if not parts:
            return None
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part
        return whole


@dataclass(frozen=True)
class AlignmentContext:
    """What an alignment may know beside the scores.

    Shapes:
        query [..., T, Dq]; offset: how many queries came before, a number or one each [B];
        previous [..., S]: the weights of the query before, None at the first.
    """

    query: Tensor
    offset: int | Tensor = 0
    previous: Tensor | None = None

    def steps(self) -> Tensor:
        """The index of each query, to broadcast with scores [B, H, T, S]: [B or 1, 1, T, 1]."""
        index = torch.arange(self.query.shape[-2], device=self.query.device)
        offset = torch.as_tensor(self.offset, device=self.query.device)
        return (offset.reshape(-1, 1) + index)[:, None, :, None]


@dataclass(frozen=True)
class Samples:
    """How places to look at were drawn, kept with gradients for an objective to learn from.

    Shapes:
        logprob, entropy: [B, H, T] from one attention, [B, T] from a model, over all of its
        heads and attentions; the log-probability of what was drawn, the entropy of all that
        could have been.
    """

    logprob: Tensor
    entropy: Tensor


@dataclass(frozen=True)
class Outputs:
    """What a model says of a batch, beside what it should have said.

    Shapes:
        logits [B, T, V]; targets [B, T], or [B, T, V] where several names can be right at once;
        mask [B, T], True where the logits count; choices [B, T], None where nothing was drawn on
        the way; target_mask [B, U], only where targets [B, U] are not aligned with the logits;
        extras: what a certain objective needs beside, tensors with the batch first; parts: what
        further heads of the model say of the same batch.
    """

    logits: Tensor
    targets: Tensor
    mask: Tensor
    samples: Samples | None = None
    target_mask: Tensor | None = None
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    parts: Mapping[str, Outputs] = field(default_factory=dict)

    def get_extra(self, name: str, required_by: str) -> Tensor:
        """One of the extras, or ZooError naming who misses it."""
        if name not in self.extras:
            raise ZooError(
                f"objective '{required_by}' needs '{name}' of the model, which gives "
                f"{', '.join(sorted(self.extras)) or 'nothing'} beside its logits"
            )
        return self.extras[name]

    def differentiable(self) -> Iterator[Tensor]:
        """Every tensor that training can push at."""
        yield self.logits
        if self.samples is not None:
            yield from (self.samples.logprob, self.samples.entropy)
        yield from (tensor for tensor in self.extras.values() if tensor.is_floating_point())
        for part in self.parts.values():
            yield from part.differentiable()


@dataclass(frozen=True)
class Selection:
    """A sampler's choice: W hypotheses an item, each continuing one of the W before.

    Shapes:
        tokens, parents, scores: [B, W]; parents in 0..W-1.
    """

    tokens: Tensor
    parents: Tensor
    scores: Tensor


@dataclass(frozen=True)
class GenerationOutput:
    """What generation gave, best hypothesis first; rows end in the end token, then padding.

    Shapes:
        tokens [B, N, T], without the prompt; scores [B, N], what the hypotheses were ranked by:
        summed log-probabilities, which a beam divides by a power of the length. A place that
        nothing could fill has the score -inf.
    """

    tokens: Tensor
    scores: Tensor

    def best(self) -> list[list[int]]:
        """The first hypothesis of each item, as lists (with end token and padding)."""
        rows: list[list[int]] = self.tokens[:, 0].tolist()
        return rows
