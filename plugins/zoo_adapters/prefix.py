"""Prefix tuning: trained keys and values of attention.

Notation: B batch, T queries, H heads, P length of the prefix, d width of a head.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import nn

from zoo import ZooError
from zoo.plugin import Adapter, AdapterLayer, Attention
from zoo_adapters.lora import Targets


class PrefixLayer(AdapterLayer):
    """Trained keys and values [H, P, d] of an attention, and a gate [H] of each head."""

    def __init__(self, module: Attention, *, length: int) -> None:
        super().__init__()
        shape = (module.heads, length, module.head_dim)
        self.keys = nn.Parameter(module.query.weight.new_empty(shape))
        self.values = nn.Parameter(module.query.weight.new_empty(shape))
        self.gate = nn.Parameter(module.query.weight.new_empty(module.heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.keys, std=0.02)
        nn.init.normal_(self.values, std=0.02)
        nn.init.zeros_(self.gate)

    def adapt_output(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        assert isinstance(module, Attention)
        queries = module.query(inputs[0]).unflatten(-1, (module.heads, -1)).transpose(1, 2)
        scores = queries @ self.keys.transpose(-1, -2) * module.head_dim**-0.5  # [B, H, T, P]
        attended = scores.softmax(dim=-1) @ self.values  # [B, H, T, d]
        gated = self.gate.tanh()[:, None, None] * attended
        # Without the bias of the projection, also if the projection is adapted.
        bias = module.project_output(torch.zeros_like(gated[:1, :, :1]))
        added = module.project_output(gated) - bias
        return output._replace(context=output.context + added)

    def merge(self, module: nn.Module) -> None:
        raise ZooError("keys and values of a prefix are not weights of the model; keep the adapter")


class Prefix(Adapter):
    r"""Prefix tuning with gates: attention to trained keys and values, added to that of the model.

    .. math::
        c_t = \sum_s \alpha_{ts} v_s + \tanh(g) \sum_p \beta_{tp} v'_p, \qquad
        \beta_t = \mathrm{softmax}\left(q_t^\top k' / \sqrt{d}\right)

    The weights of the prefix are normalised on their own, and the gate g of each head is 0
    initially, so that an untrained prefix changes nothing (Zhang et al. 2023, equations 5 to 9). In
    the paper of Li and Liang 2021 the prefix shares the softmax with the other keys, from which
    the outputs differ already at the start. Queries are compared with the prefix before a rotary
    position is applied, so the prefix has no position.

    Args:
        targets: patterns for the paths of attentions with projections.
        length: number of trained keys and values, P.

    Shapes:
        those of the adapted attention.
    """

    name: ClassVar[str] = "prefix"
    paper: ClassVar[str] = (
        "Li and Liang 2021, Prefix-Tuning: Optimizing Continuous Prompts for Generation, "
        "arXiv:2101.00190; Zhang et al. 2023, LLaMA-Adapter, arXiv:2303.16199"
    )
    test_params: ClassVar[dict[str, Any]] = {"targets": ["attention"], "length": 3}

    def __init__(
        self, *, targets: Targets, length: Annotated[int, Field(ge=1, le=65_536)] = 10
    ) -> None:
        super().__init__(targets=targets)
        self.length = length

    def supports(self, module: nn.Module) -> bool:
        return isinstance(module, Attention) and module.project != "none"

    def build_layer(self, module: nn.Module) -> AdapterLayer:
        assert isinstance(module, Attention)
        return PrefixLayer(module, length=self.length)
