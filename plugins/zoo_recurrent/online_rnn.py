"""Online recurrent decoder: reads frames in order and decides when to emit a token."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo.plugin import Decoder, Embedding, FromParent, Memory, Samples, State
from zoo_recurrent.cells import Cell, CellStack
from zoo_recurrent.emission import Emission
from zoo_recurrent.vocab_size import vocab_size

TensorMapping = Mapping[str, Tensor]


class OnlineRNN(Decoder):
    r"""Recurrent decoder that reads one frame per step and decides whether to emit a token.

    .. math::
        h_i = \mathrm{cell}([x_i; E y; b_{i-1}], h_{i-1}), \quad
        b_i \sim \mathrm{Bernoulli}(\sigma(W_b h_i)), \quad
        p(y' \mid b_i = 1) = \mathrm{softmax}(W_o h_i)

    where x are the states of the encoder, y is the last token and y' the next one. Each step reads
    the next frame; a token is emitted if b = 1. The output is online: a token depends only on the
    frames that were read before it, if the encoder is causal (for example a recurrent encoder in
    one direction).

    Paper: Luo et al. 2016, section 2. After the last frame the decoder reads a frame of zeros and
    always emits, so that every target has a probability. In evaluation a token is emitted if its
    probability exceeds 1/2. The objective `reinforce` trains the decisions.

    Args:
        embedding: target embedding.
        memory_dim: width of the encoder's states.
        hidden: width of the state.
        cell: recurrent cell.
        layers: number of layers.
        dropout: dropout probability of the embedded tokens, between layers and before the output.

    Shapes:
        tokens [B, n] -> logits [B, n, V].
    """

    name: ClassVar[str] = "online-rnn"
    paper: ClassVar[str] = (
        "Luo et al. 2016, Learning Online Alignments with Continuous Rewards Policy Gradient, "
        "arXiv:1608.01281"
    )

    def __init__(
        self,
        *,
        embedding: FromParent[Embedding],
        memory_dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)],
        cell: Cell = "lstm",
        layers: Annotated[int, Field(ge=1, le=64)] = 1,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.memory_dim, self.hidden, self.layers = memory_dim, hidden, layers
        self.cells = CellStack(cell, memory_dim + embedding.dim + 1, hidden, layers, dropout)
        self.emission = Emission(hidden)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(hidden, vocab_size(embedding))

    def start(self, memory: Memory, *, steps: int) -> State:
        order = (~memory.mask).long().argsort(dim=1, stable=True)  # valid frames first
        frames = memory.states.gather(1, order[..., None].expand_as(memory.states))
        zeros = memory.states.new_zeros(len(order), self.layers, self.hidden)
        per_hypothesis = dict.fromkeys(self.cells.state_names, zeros)
        lengths = memory.mask.sum(dim=1)
        per_hypothesis["position"] = torch.zeros_like(lengths)
        # Index S is the frame of zeros that is read after the last frame.
        frames = F.pad(frames, (0, 0, 0, 1))
        return State(per_hypothesis, {"frames": frames, "order": order, "lengths": lengths})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        embedded = self.dropout(self.embedding(tokens))  # [B, n, E]
        n, S = tokens.shape[1], state.per_source["order"].shape[1]
        hypothesis = dict(state.per_hypothesis)
        count = torch.zeros_like(hypothesis["position"])  # number of tokens that were emitted
        previous = torch.ones_like(embedded[:, 0, :1])
        log = []
        for _ in range(S + n):
            if _all_emitted(count, n):
                break
            slot = count.clamp(max=n - 1)
            y = embedded.gather(1, slot[:, None, None].expand(-1, -1, embedded.shape[-1]))[:, 0]
            inputs = torch.cat([y, previous], dim=-1)
            read, hypothesis = self._read(inputs, hypothesis, state.per_source, count < n)
            emit, logprob, entropy = self.emission(hypothesis["h"][:, -1], read >= S)
            log.append((hypothesis["h"][:, -1], slot, emit & (count < n), logprob, entropy, read))
            previous = emit[:, None].to(previous)
            count = count + log[-1][2]
        features = self._collect([torch.stack(v, dim=1) for v in zip(*log, strict=True)], n, state)
        logits: Tensor = self.out(self.dropout(features))
        return logits, state.updated(hypothesis)

    def _read(
        self, inputs: Tensor, hypothesis: TensorMapping, per_source: TensorMapping, active: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Read the next frame with inputs [B, E + 1].

        Returns its index [B], S after the last frame, and the state, updated where active [B].
        """
        frames, position = per_source["frames"], hypothesis["position"]
        at_end = position >= per_source["lengths"]
        index = torch.where(at_end, frames.shape[1] - 1, position)
        x = frames.gather(1, index[:, None, None].expand(-1, -1, frames.shape[-1]))[:, 0]
        updated = self.cells(torch.cat([x, inputs], dim=-1), hypothesis)
        updated["position"] = position + (~at_end).long()
        return index, {
            name: torch.where(active.view(-1, *[1] * (new.dim() - 1)), new, hypothesis[name])
            for name, new in updated.items()
        }

    def _collect(self, log: Sequence[Tensor], n: int, state: State) -> Tensor:
        """Return the features [B, n, hidden] of the tokens, and record the decisions.

        log: state, token, emission, log-probability, entropy and frame of each iteration, [B, I].
        """
        h, slot, emit, logprob, entropy, read = log
        B, iterations = slot.shape
        # Inactive iterations after the last token have no effect.
        active = emit.flip(1).cumsum(dim=1).flip(1) > 0
        zeros = slot.new_zeros(B, n)
        index = torch.arange(iterations, device=slot.device)
        emitted_at = zeros.scatter_add(1, slot, emit * index)
        samples = [
            values.new_zeros(B, n).scatter_add(1, slot, values * active)[:, None]
            for values in (logprob, entropy)
        ]
        order = state.per_source["order"]
        frame = F.one_hot(read.gather(1, emitted_at), order.shape[1] + 1)[..., :-1]  # [B, n, S]
        weights = torch.zeros_like(frame).scatter(2, order[:, None].expand_as(frame), frame)
        self.emission.record(weights[:, None].to(h), Samples(*samples))
        return h.gather(1, emitted_at[..., None].expand(-1, -1, self.hidden))


def _all_emitted(count: Tensor, n: int) -> bool:
    """Whether every item has emitted n tokens; False if there are no items, or if the check would
    synchronise.
    """
    if torch.compiler.is_compiling() or count.device.type != "cpu":
        return False
    return len(count) > 0 and bool((count >= n).all())
