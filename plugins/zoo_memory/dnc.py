"""Differentiable neural computer."""

import functools
from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo.plugin import FromParent, full_precision
from zoo_memory.memory_encoder import Controller, MemoryEncoder, content_weights, one_plus


class DNC(MemoryEncoder):
    r"""Differentiable neural computer encoder: external memory with allocation and temporal links.

    .. math::
        u_t = (u_{t-1} + w^w_{t-1} - u_{t-1} \odot w^w_{t-1}) \odot \psi_t, \quad
        a_t[\phi_j] = (1 - u_t[\phi_j]) \prod_{i<j} u_t[\phi_i]

        w^w_t = g^w_t [g^a_t a_t + (1 - g^a_t) c^w_t], \quad
        L_t[i,j] = (1 - w^w_t[i] - w^w_t[j]) L_{t-1}[i,j] + w^w_t[i] p_{t-1}[j]

        w^r_t = \pi_1 L_t^\top w^r_{t-1} + \pi_2 c^r_t + \pi_3 L_t w^r_{t-1}

    Paper: Graves et al. 2016, Methods.

    Args:
        input_dim: width of the inputs.
        hidden: width of the controller.
        slots: number of memory locations, N.
        width: width of a location.
        read_heads: number of read heads; there is one write head.
        controller: "lstm" as in the paper, or "feed-forward" for h_t = tanh(W [x_t; r_{t-1}] + b),
            which has no recurrent state.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, hidden + read_heads * width].
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
        read_heads: Annotated[int, Field(ge=1, le=64)] = 4,
        controller: Controller = "lstm",
    ) -> None:
        # Sizes of the parts of the interface vector, in the order of `memory_step`.
        R = read_heads
        sizes = [R * width, R, width, 1, width, width, R, 1, 1, R * 3]
        super().__init__(
            input_dim=input_dim,
            hidden=hidden,
            read_dim=R * width,
            interface_dim=sum(sizes),
            controller=controller,
        )
        self.slots, self.width, self.read_heads, self.sizes = slots, width, read_heads, sizes

    def initial_memory(self, inputs: Tensor) -> Mapping[str, Tensor]:
        B, N = inputs.shape[0], self.slots
        return {
            "memory": inputs.new_zeros(B, N, self.width),
            "usage": inputs.new_zeros(B, N),
            "links": inputs.new_zeros(B, N, N),
            "precedence": inputs.new_zeros(B, N),
            "reads": inputs.new_zeros(B, self.read_heads, N),
            "write": inputs.new_zeros(B, N),
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
        w = write[..., None]
        memory = state["memory"] * (1 - w * erase.sigmoid()[:, None]) + w * add[:, None]
        links = self._links(state, write)
        precedence = (1 - write.sum(dim=-1, keepdim=True)) * state["precedence"] + write
        content = content_weights(
            memory, keys.view(len(interface), self.read_heads, -1), one_plus(read_strengths)
        )
        backward_mode, content_mode, forward_mode = (
            modes.view(len(interface), self.read_heads, 3).softmax(dim=-1)[..., None].unbind(dim=2)
        )
        reads = backward_mode * (state["reads"] @ links) + content_mode * content
        reads = reads + forward_mode * (state["reads"] @ links.mT)
        self.writes.record(write[:, None, None])
        self.reads.record(reads[:, :, None])
        next_state = {
            "memory": memory,
            "usage": usage,
            "links": links,
            "precedence": precedence,
            "reads": reads,
            "write": write,
        }
        return (reads @ memory).flatten(1), next_state

    def _usage(self, state: Mapping[str, Tensor], free: Tensor) -> Tensor:
        """Return the usage [B, N]: written locations that no read head has freed."""
        # The backward passes of prod and cumprod wait for the device.
        retained = (1 - free[..., None] * state["reads"]).unbind(dim=1)
        retention = functools.reduce(torch.mul, retained)
        usage, write = state["usage"], state["write"]
        return (usage + write - usage * write) * retention

    def _links(self, state: Mapping[str, Tensor], write: Tensor) -> Tensor:
        """Return the links [B, N, N]: the degree to which location i was written right after j."""
        rows, columns = write[..., None], write[:, None]
        links = (1 - rows - columns) * state["links"] + rows * state["precedence"][:, None]
        return links * (1 - torch.eye(self.slots, dtype=links.dtype, device=links.device))


def allocation(usage: Tensor) -> Tensor:
    """Return allocation weights for usage [..., N]; the least used location has the largest."""
    exact = full_precision(usage)
    sorted_usage, order = exact.sort(dim=-1, stable=True)
    before = previous_products(sorted_usage)
    weights = torch.zeros_like(exact).scatter(-1, order, (1 - sorted_usage) * before)
    return weights.to(usage.dtype)


def previous_products(factors: Tensor) -> Tensor:
    """Return the product of all previous elements of the last dimension, 1 for the first.

    Each pass doubles the number of elements that are multiplied.
    """
    N = factors.shape[-1]
    products = F.pad(factors[..., :-1], (1, 0), value=1.0)
    distance = 1
    while distance < N:
        products = products * F.pad(products[..., :-distance], (distance, 0), value=1.0)
        distance *= 2
    return products
