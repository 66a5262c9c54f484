"""A controller with a memory, run over a sequence."""

from abc import abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from zoo.plugin import Encoder, Memory

MemoryState = Mapping[str, Tensor]


class MemoryEncoder(Encoder):
    """An LSTM controller that reads its memory at each step; the memory's rules are the child's.

    At each step the controller sees the input and what was read a step before; the child's
    `memory_step` moves the memory by what the controller says, and reads it.
    """

    def __init__(self, *, input_dim: int, hidden: int, read: int, interface: int) -> None:
        """read: how many numbers are read a step; said: how many the controller says."""
        super().__init__()
        self.controller = nn.LSTMCell(input_dim + read, hidden)
        self.say = nn.Linear(hidden, interface)
        self.output_dim = self.summary_dim = hidden + read
        self.carry: Mapping[str, tuple[int, int]] = {}

    @abstractmethod
    def initial_memory(self, like: Tensor) -> MemoryState:
        """The memory before the first step, for a batch, dtype and device like those given."""

    @abstractmethod
    def memory_step(self, interface: Tensor, state: MemoryState) -> tuple[Tensor, MemoryState]:
        """said [B, said], memory -> read [B, read], memory after the step."""

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        B, S, _ = inputs.shape
        zeros = inputs.new_zeros(B, self.controller.hidden_size)
        state: dict[str, Tensor] = {
            **self.initial_memory(inputs),
            "h": zeros,
            "c": zeros,
            "read": inputs.new_zeros(B, self.output_dim - self.controller.hidden_size),
        }
        states = []
        for t in range(S):
            x = torch.cat([inputs[:, t], state["read"]], dim=-1)
            h, c = self.controller(x, (state["h"], state["c"]))
            memory_state = {name: state[name] for name in state if name not in ("h", "c", "read")}
            read, after = self.memory_step(self.say(h), memory_state)
            updated = {**after, "h": h, "c": c, "read": read}
            real = mask[:, t]
            state = {
                name: value.where(real.view(-1, *(1,) * (value.dim() - 1)), state[name])
                for name, value in updated.items()
            }
            states.append(torch.cat([state["h"], state["read"]], dim=-1))
        outputs = torch.stack(states, dim=1) if states else inputs.new_zeros(B, 0, self.output_dim)
        return Memory(
            outputs * mask[..., None], mask, torch.cat([state["h"], state["read"]], dim=-1)
        )


def content_weights(memory: Tensor, keys: Tensor, strength: Tensor) -> Tensor:
    """By likeness: memory [B, N, M], keys [B, H, M], strength [B, H] -> weights [B, H, N]."""
    dots = keys @ memory.mT
    norms = keys.norm(dim=-1)[..., None] * memory.norm(dim=-1)[:, None]
    weights: Tensor = (dots / (norms + 1e-6) * strength[..., None]).softmax(dim=-1)
    return weights


def one_plus(x: Tensor) -> Tensor:
    """Anything to a number of at least one."""
    return 1 + nn.functional.softplus(x)
