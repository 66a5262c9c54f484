"""Base class of encoders with an external memory."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from zoo.plugin import Encoder, Memory, rename_params

MemoryState = Mapping[str, Tensor]


class MemoryEncoder(Encoder):
    """LSTM controller with an external memory.

    The input of the controller is the input of the step and the vector read in the previous step.
    A linear layer maps its output to the interface vector, with which a subclass updates and reads
    the memory in `memory_step`.

    Args:
        input_dim: width of the inputs.
        hidden: width of the controller.
        read_dim: width of the vector read at each step.
        interface_dim: width of the interface vector.
    """

    version: ClassVar[int] = 2

    def __init__(self, *, input_dim: int, hidden: int, read_dim: int, interface_dim: int) -> None:
        super().__init__()
        self.input_dim, self.hidden, self.read_dim = input_dim, hidden, read_dim
        self.controller = nn.LSTMCell(input_dim + read_dim, hidden)
        self.say = nn.Linear(hidden, interface_dim)
        self.output_dim = self.summary_dim = hidden + read_dim
        self.carry: Mapping[str, tuple[int, int]] = {}

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, reads="read_heads")
        return params, tensors

    @abstractmethod
    def initial_memory(self, inputs: Tensor) -> MemoryState:
        """Return the initial memory for inputs [B, ...], with their dtype and device."""

    @abstractmethod
    def memory_step(self, interface: Tensor, state: MemoryState) -> tuple[Tensor, MemoryState]:
        """Compute the read vector [B, read_dim] and the updated memory.

        interface [B, interface_dim] is the interface vector.
        """

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        B, S, _ = inputs.shape
        zeros = inputs.new_zeros(B, self.hidden)
        state: dict[str, Tensor] = {
            **self.initial_memory(inputs),
            "h": zeros,
            "c": zeros,
            "read": inputs.new_zeros(B, self.read_dim),
        }
        states = []
        for t in range(S):
            x = torch.cat([inputs[:, t], state["read"]], dim=-1)
            h, c = self.controller(x, (state["h"], state["c"]))
            memory_state = {name: state[name] for name in state if name not in ("h", "c", "read")}
            read, next_memory = self.memory_step(self.say(h), memory_state)
            updated = {**next_memory, "h": h, "c": c, "read": read}
            valid = mask[:, t]
            state = {
                name: value.where(valid.view(-1, *(1,) * (value.dim() - 1)), state[name])
                for name, value in updated.items()
            }
            states.append(torch.cat([state["h"], state["read"]], dim=-1))
        outputs = torch.stack(states, dim=1) if states else inputs.new_zeros(B, 0, self.output_dim)
        return Memory(
            outputs * mask[..., None], mask, torch.cat([state["h"], state["read"]], dim=-1)
        )


def content_weights(memory: Tensor, keys: Tensor, strength: Tensor) -> Tensor:
    """Return the softmax of cosine similarities times the strength.

    memory [B, N, M], keys [B, H, M], strength [B, H] -> weights [B, H, N].
    """
    dots = keys @ memory.mT
    norms = keys.norm(dim=-1)[..., None] * memory.norm(dim=-1)[:, None]
    weights: Tensor = (dots / (norms + 1e-6) * strength[..., None]).softmax(dim=-1)
    return weights


def one_plus(x: Tensor) -> Tensor:
    """Return 1 + softplus(x), which is at least 1."""
    return 1 + nn.functional.softplus(x)
