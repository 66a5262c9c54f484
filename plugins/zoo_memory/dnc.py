"""Differentiable neural computer."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo.plugin import FromParent, full_precision
from zoo_memory.memory_encoder import MemoryEncoder, content_weights, one_plus


class DNC(MemoryEncoder):
    r"""Reads a sequence with a memory that it allocates, frees, and walks in the order of writing.

    .. math::
        u_t = (u_{t-1} + w^w_{t-1} - u_{t-1} \odot w^w_{t-1}) \odot \psi_t, \quad
        a_t[\phi_j] = (1 - u_t[\phi_j]) \prod_{i<j} u_t[\phi_i]

        w^w_t = g^w_t [g^a_t a_t + (1 - g^a_t) c^w_t], \quad
        L_t[i,j] = (1 - w^w_t[i] - w^w_t[j]) L_{t-1}[i,j] + w^w_t[i] p_{t-1}[j]

        w^r_t = \pi_1 L_t^\top w^r_{t-1} + \pi_2 c^r_t + \pi_3 L_t w^r_{t-1}

    Paper: Graves et al. 2016, Methods.

    Args:
        input_dim: width of the inputs.
        hidden: width of the LSTM controller.
        slots: how many places the memory has, N.
        width: of a place.
        reads: how many heads read; one writes.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, hidden + reads * width].
    """

    name: ClassVar[str] = "dnc"
    paper: ClassVar[str] = (
        "Graves et al. 2016, Hybrid Computing Using a Neural Network with Dynamic External Memory"
    )

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)] = 128,
        slots: Annotated[int, Field(ge=1)] = 64,
        width: Annotated[int, Field(ge=1)] = 16,
        reads: Annotated[int, Field(ge=1, le=64)] = 4,
    ) -> None:
        # What the controller says, in the order in which `memory_step` takes it apart.
        sizes = [reads * width, reads, width, 1, width, width, reads, 1, 1, reads * 3]
        super().__init__(
            input_dim=input_dim, hidden=hidden, read=reads * width, interface=sum(sizes)
        )
        self.slots, self.width, self.reads, self.sizes = slots, width, reads, sizes

    def initial_memory(self, like: Tensor) -> Mapping[str, Tensor]:
        B, N = like.shape[0], self.slots
        return {
            "memory": like.new_zeros(B, N, self.width),
            "usage": like.new_zeros(B, N),
            "links": like.new_zeros(B, N, N),
            "precedence": like.new_zeros(B, N),
            "reads": like.new_zeros(B, self.reads, N),
            "write": like.new_zeros(B, N),
        }

    def memory_step(
        self, interface: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        keys, read_strengths, write_key, write_strength, erase, add, free, allocate, gate, modes = (
            torch.split(interface, self.sizes, dim=-1)
        )
        usage = self._usage(state, free.sigmoid())
        write_content = content_weights(
            state["memory"], write_key[:, None], one_plus(write_strength)
        )[:, 0]
        allocation_gate = allocate.sigmoid()
        write = gate.sigmoid() * (
            allocation_gate * allocation(usage) + (1 - allocation_gate) * write_content
        )  # [B, N]
        place = write[..., None]
        memory = state["memory"] * (1 - place * erase.sigmoid()[:, None]) + place * add[:, None]
        links = self._links(state, write)
        precedence = (1 - write.sum(dim=-1, keepdim=True)) * state["precedence"] + write
        content = content_weights(
            memory, keys.view(len(interface), self.reads, -1), one_plus(read_strengths)
        )
        backward_mode, content_mode, on = (
            modes.view(len(interface), self.reads, 3).softmax(dim=-1)[..., None].unbind(dim=2)
        )
        reads = backward_mode * (state["reads"] @ links) + content_mode * content
        reads = reads + on * (state["reads"] @ links.mT)
        after = {
            "memory": memory,
            "usage": usage,
            "links": links,
            "precedence": precedence,
            "reads": reads,
            "write": write,
        }
        return (reads @ memory).flatten(1), after

    def _usage(self, state: Mapping[str, Tensor], free: Tensor) -> Tensor:
        """What is in use: written before, and not freed by the heads that read it. [B, N]"""
        retention = (1 - free[..., None] * state["reads"]).prod(dim=1)
        usage, write = state["usage"], state["write"]
        return (usage + write - usage * write) * retention

    def _links(self, state: Mapping[str, Tensor], write: Tensor) -> Tensor:
        """[B, N, N]: how far i was written right after j."""
        rows, columns = write[..., None], write[:, None]
        links = (1 - rows - columns) * state["links"] + rows * state["precedence"][:, None]
        return links * (1 - torch.eye(self.slots, dtype=links.dtype, device=links.device))


def allocation(usage: Tensor) -> Tensor:
    """Where there is room: most on the least used place, by usage [..., N] -> [..., N]."""
    exact = full_precision(usage)
    sorted_usage, order = exact.sort(dim=-1, stable=True)
    products = sorted_usage.cumprod(dim=-1).roll(1, dims=-1)
    before = torch.cat([torch.ones_like(products[..., :1]), products[..., 1:]], dim=-1)
    room = torch.zeros_like(exact).scatter(-1, order, (1 - sorted_usage) * before)
    return room.to(usage.dtype)
