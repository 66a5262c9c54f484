"""Base class of encoders with an external memory."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from zoo.plugin import Encoder, Memory, RecordsAttention, rename_params

MemoryState = Mapping[str, Tensor]
Controller = Literal["lstm", "feed-forward"]


class MemoryEncoder(Encoder):
    r"""Controller with an external memory.

    .. math:: h_t = \mathrm{LSTM}([x_t; r_{t-1}], h_{t-1}) \quad \text{or} \quad
        h_t = \tanh(W [x_t; r_{t-1}] + b)

    The input of the controller is the input of the step and the vector read in the previous step.
    A linear layer maps its output to the interface vector, with which a subclass updates and reads
    the memory in `memory_step`. A feed-forward controller has no recurrent state; its output
    depends on previous steps only through the vector read.

    Args:
        input_dim: width of the inputs.
        hidden: width of the controller.
        read_dim: width of the vector read at each step.
        interface_dim: width of the interface vector.
        controller: "lstm" or "feed-forward".
    """

    version: ClassVar[int] = 2

    def __init__(
        self,
        *,
        input_dim: int,
        hidden: int,
        read_dim: int,
        interface_dim: int,
        controller: Controller,
    ) -> None:
        super().__init__()
        self.input_dim, self.hidden = input_dim, hidden
        self.read_dim, self.interface_dim = read_dim, interface_dim
        self.controller_state = ("h", "c") if controller == "lstm" else ("h",)
        layer = nn.LSTMCell if controller == "lstm" else nn.Linear
        self.controller = layer(input_dim + read_dim, hidden)
        self.say = nn.Linear(hidden, interface_dim)
        self.output_dim = self.summary_dim = hidden + read_dim
        self.carry: Mapping[str, tuple[int, int]] = {}
        self.reads, self.writes = RecordsAttention(), RecordsAttention()

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

        interface [B, interface_dim] is the interface vector. The weights of the heads over the N
        locations, [B, H, 1, N], are recorded by `reads` and `writes`.
        """

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        B = len(inputs)
        memory: MemoryState = {
            **self.initial_memory(inputs),
            "read": inputs.new_zeros(B, self.read_dim),
        }
        control: MemoryState = dict.fromkeys(
            self.controller_state, inputs.new_zeros(B, self.hidden)
        )
        states = []
        for step, valid in zip(inputs.unbind(dim=1), mask.unbind(dim=1), strict=True):
            x = torch.cat([step, memory["read"]], dim=-1)
            control = _select(valid, self._control(x, control), control)
            memory = self.next_memory(self.say(control["h"]), memory, valid)
            states.append(torch.cat([control["h"], memory["read"]], dim=-1))
        outputs = torch.stack(states, dim=1) if states else inputs.new_zeros(B, 0, self.output_dim)
        return Memory(
            outputs * mask[..., None], mask, torch.cat([control["h"], memory["read"]], dim=-1)
        )

    def next_memory(self, interface: Tensor, memory: MemoryState, valid: Tensor) -> MemoryState:
        """Update and read the memory of valid items [B]; that of the others does not change."""
        previous = {name: value for name, value in memory.items() if name != "read"}
        read, updated = self.memory_step(interface, previous)
        return _select(valid, {**updated, "read": read}, memory)

    def _control(self, x: Tensor, state: MemoryState) -> MemoryState:
        """Return the output h [B, hidden] of the controller and the cell state c of an LSTM."""
        if "c" not in self.controller_state:
            return {"h": self.controller(x).tanh()}
        h, c = self.controller(x, (state["h"], state["c"]))
        return {"h": h, "c": c}


def _select(valid: Tensor, updated: MemoryState, previous: MemoryState) -> MemoryState:
    """Return the updated state of valid items [B], and the previous state of the others."""
    return {
        name: value.where(valid.view(-1, *(1,) * (value.dim() - 1)), previous[name])
        for name, value in updated.items()
    }


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
