"""Neural Turing machine."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import FromParent
from zoo_memory.memory_encoder import MemoryEncoder, content_weights, one_plus


class NTM(MemoryEncoder):
    r"""Reads a sequence while writing to and reading from a memory, by content and by place.

    .. math::
        w^c_t \propto \exp(\beta_t \cos(k_t, M_t)), \quad w^g_t = g_t w^c_t + (1 - g_t) w_{t-1}

        w_t \propto (w^g_t * s_t)^{\gamma_t}

        M_t = M_{t-1} \odot (1 - w_t e_t^\top) + w_t a_t^\top, \qquad r_t = w_t^\top M_t

    Paper: Graves et al. 2014, equations 2 to 9. Heads stand on the first slot at first, the memory
    is almost zero, as the authors leave it open.

    Args:
        input_dim: width of the inputs.
        hidden: width of the LSTM controller.
        slots: how many places the memory has, N.
        width: of a place, M.
        reads: how many heads read; one writes.
        shift: how far a head can move at a step, each way.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, hidden + reads * width].
    """

    name: ClassVar[str] = "ntm"
    paper: ClassVar[str] = (
        "Graves, Wayne and Danihelka 2014, Neural Turing Machines, arXiv:1410.5401"
    )

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)] = 100,
        slots: Annotated[int, Field(ge=1)] = 128,
        width: Annotated[int, Field(ge=1)] = 20,
        reads: Annotated[int, Field(ge=1, le=64)] = 1,
        shift: Annotated[int, Field(ge=0)] = 1,
    ) -> None:
        # A head says its key, how sure it is, keep or look up, how sharply, and shifts.
        head = width + 3 + (2 * shift + 1)
        interface = (reads + 1) * head + 2 * width
        super().__init__(
            input_dim=input_dim, hidden=hidden, read=reads * width, interface=interface
        )
        self.slots, self.width, self.reads, self.shift, self.head = slots, width, reads, shift, head

    def initial_memory(self, like: Tensor) -> Mapping[str, Tensor]:
        B = like.shape[0]
        first = like.new_zeros(B, self.reads + 1, self.slots)
        first[..., 0] = 1
        return {
            "memory": like.new_full((B, self.slots, self.width), 1e-6),
            "weights": first,
        }

    def memory_step(
        self, interface: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        heads = interface[:, : (self.reads + 1) * self.head].view(
            len(interface), self.reads + 1, -1
        )
        erase, add = interface[:, (self.reads + 1) * self.head :].chunk(2, dim=-1)
        memory, previous = state["memory"], state["weights"]
        writes = self.address(memory, heads[:, -1:], previous[:, -1:])  # [B, 1, N]
        place = writes.mT  # [B, N, 1]
        memory = memory * (1 - place * erase.sigmoid()[:, None]) + place * add.tanh()[:, None]
        reads = self.address(memory, heads[:, :-1], previous[:, :-1])  # [B, R, N]
        read = (reads @ memory).flatten(1)
        return read, {"memory": memory, "weights": torch.cat([reads, writes], dim=1)}

    def address(self, memory: Tensor, heads: Tensor, previous: Tensor) -> Tensor:
        """Where heads [B, H, *] that stood at before [B, H, N] go: [B, H, N]."""
        sizes = [self.width, 1, 1, 1, 2 * self.shift + 1]
        key, sure, gate, sharpness, shifts = torch.split(heads, sizes, dim=-1)
        content = content_weights(memory, key.tanh(), torch.nn.functional.softplus(sure[..., 0]))
        keep = gate.sigmoid()
        mixed = keep * content + (1 - keep) * previous
        shift_weights = shifts.softmax(dim=-1)
        rolled = [
            shift_weights[..., i : i + 1] * mixed.roll(i - self.shift, dims=-1)
            for i in range(2 * self.shift + 1)
        ]
        shifted = torch.stack(rolled).sum(dim=0)
        # Powers by logarithms: those of many small weights would all be 0.
        return (one_plus(sharpness) * (shifted + 1e-12).log()).softmax(dim=-1)
