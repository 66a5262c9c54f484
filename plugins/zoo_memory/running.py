"""A controller with a memory, run over a sequence."""

from abc import abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from zoo.plugin import Encoder, Memory

State = Mapping[str, Tensor]


class Remembering(Encoder):
    """An LSTM controller that reads its memory at each step; the memory's rules are the child's.

    At each step the controller sees the input and what was read a step before; the child's
    `remember` moves the memory by what the controller says, and reads it.
    """

    def __init__(self, *, input_dim: int, hidden: int, read: int, said: int) -> None:
        """read: how many numbers are read a step; said: how many the controller says."""
        super().__init__()
        self.controller = nn.LSTMCell(input_dim + read, hidden)
        self.say = nn.Linear(hidden, said)
        self.output_dim = self.summary_dim = hidden + read
        self.carry: Mapping[str, tuple[int, int]] = {}

    @abstractmethod
    def blank(self, like: Tensor) -> State:
        """The memory before the first step, for a batch, dtype and device like those given."""

    @abstractmethod
    def remember(self, said: Tensor, state: State) -> tuple[Tensor, State]:
        """said [B, said], memory -> read [B, read], memory after the step."""

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        B, S, _ = inputs.shape
        nothing = inputs.new_zeros(B, self.controller.hidden_size)
        state: dict[str, Tensor] = {
            **self.blank(inputs),
            "h": nothing,
            "c": nothing,
            "read": inputs.new_zeros(B, self.output_dim - self.controller.hidden_size),
        }
        states = []
        for t in range(S):
            x = torch.cat([inputs[:, t], state["read"]], dim=-1)
            h, c = self.controller(x, (state["h"], state["c"]))
            own = {name: state[name] for name in state if name not in ("h", "c", "read")}
            read, after = self.remember(self.say(h), own)
            moved = {**after, "h": h, "c": c, "read": read}
            real = mask[:, t]
            state = {
                name: value.where(real.view(-1, *(1,) * (value.dim() - 1)), state[name])
                for name, value in moved.items()
            }
            states.append(torch.cat([state["h"], state["read"]], dim=-1))
        whole = torch.stack(states, dim=1) if states else inputs.new_zeros(B, 0, self.output_dim)
        return Memory(whole * mask[..., None], mask, torch.cat([state["h"], state["read"]], dim=-1))


def content_weights(memory: Tensor, keys: Tensor, strength: Tensor) -> Tensor:
    """By likeness: memory [B, N, M], keys [B, H, M], strength [B, H] -> weights [B, H, N]."""
    dots = keys @ memory.mT
    lengths = keys.norm(dim=-1)[..., None] * memory.norm(dim=-1)[:, None]
    weights: Tensor = (dots / (lengths + 1e-6) * strength[..., None]).softmax(dim=-1)
    return weights


def one_plus(x: Tensor) -> Tensor:
    """Anything to a number of at least one."""
    return 1 + nn.functional.softplus(x)
