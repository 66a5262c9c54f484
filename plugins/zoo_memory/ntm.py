"""Neural Turing machine."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from zoo.plugin import FromParent
from zoo_memory.memory_encoder import Controller, MemoryEncoder, content_weights, one_plus


class NTM(MemoryEncoder):
    r"""Neural Turing machine encoder: external memory addressed by content and by location.

    .. math::
        w^c_t \propto \exp(\beta_t \cos(k_t, M_t)), \quad w^g_t = g_t w^c_t + (1 - g_t) w_{t-1}

        w_t \propto (w^g_t * s_t)^{\gamma_t}

        M_t = M_{t-1} \odot (1 - w_t e_t^\top) + w_t a_t^\top, \qquad r_t = w_t^\top M_t

    where the write head is addressed with M_{t-1} instead of M_t.

    Paper: Graves et al. 2014, equations 2 to 9. The initial state is not specified there; here all
    heads start at the first location, and all memory elements are 1e-6.

    Args:
        input_dim: width of the inputs.
        hidden: width of the controller.
        slots: number of memory locations, N.
        width: width of a location.
        read_heads: number of read heads; there is one write head.
        shift: maximum shift of a head in one step, in each direction.
        controller: "lstm", or "feed-forward" for h_t = tanh(W [x_t; r_{t-1}] + b), which has no
            recurrent state; the paper has results with both.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, hidden + read_heads * width].
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
        read_heads: Annotated[int, Field(ge=1, le=64)] = 1,
        shift: Annotated[int, Field(ge=0, le=64)] = 1,
        controller: Controller = "lstm",
    ) -> None:
        # Parameters of a head: key, strength, gate, sharpness and shift weights.
        head_dim = width + 3 + (2 * shift + 1)
        super().__init__(
            input_dim=input_dim,
            hidden=hidden,
            read_dim=read_heads * width,
            interface_dim=(read_heads + 1) * head_dim + 2 * width,
            controller=controller,
        )
        self.slots, self.width, self.read_heads = slots, width, read_heads
        self.shift, self.head_dim = shift, head_dim

    def initial_memory(self, inputs: Tensor) -> Mapping[str, Tensor]:
        B = inputs.shape[0]
        weights = inputs.new_zeros(B, self.read_heads + 1, self.slots)
        weights[..., 0] = 1
        return {"memory": inputs.new_full((B, self.slots, self.width), 1e-6), "weights": weights}

    def memory_step(
        self, interface: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        heads_dim = (self.read_heads + 1) * self.head_dim
        heads = interface[:, :heads_dim].view(len(interface), self.read_heads + 1, self.head_dim)
        erase, add = interface[:, heads_dim:].chunk(2, dim=-1)
        memory, previous = state["memory"], state["weights"]
        write = self.address(memory, heads[:, -1:], previous[:, -1:])  # [B, 1, N]
        w = write.mT  # [B, N, 1]
        memory = memory * (1 - w * erase.sigmoid()[:, None]) + w * add.tanh()[:, None]
        reads = self.address(memory, heads[:, :-1], previous[:, :-1])  # [B, R, N]
        self.writes.record(write[:, :, None])
        self.reads.record(reads[:, :, None])
        read = (reads @ memory).flatten(1)
        return read, {"memory": memory, "weights": torch.cat([reads, write], dim=1)}

    def address(self, memory: Tensor, heads: Tensor, previous: Tensor) -> Tensor:
        """Compute weights [B, H, N] from heads [B, H, head_dim] and previous weights [B, H, N]."""
        sizes = [self.width, 1, 1, 1, 2 * self.shift + 1]
        key, strength, gate, sharpness, shifts = torch.split(heads, sizes, dim=-1)
        content = content_weights(memory, key.tanh(), F.softplus(strength[..., 0]))
        g = gate.sigmoid()
        mixed = g * content + (1 - g) * previous
        shift_weights = shifts.softmax(dim=-1)
        rolled = [
            shift_weights[..., i : i + 1] * mixed.roll(i - self.shift, dims=-1)
            for i in range(2 * self.shift + 1)
        ]
        shifted = torch.stack(rolled).sum(dim=0)
        # Computed in log space, so that powers of small weights do not underflow.
        return (one_plus(sharpness) * (shifted + 1e-12).log()).softmax(dim=-1)
