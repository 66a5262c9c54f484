"""Which implementation an attention uses, and why not a faster one."""

from __future__ import annotations

from zoo.attention.scorer_bank import ScorerBank
from zoo.interfaces import Alignment, Scorer
from zoo.interfaces.triton_support import why_not_triton_on


def describe_path(scorers: ScorerBank, align: Alignment, device: str) -> str:
    """Describe the path of an attention on a device type: 'fused', 'Triton', 'chunks', 'reference'.

    Reasons that change from call to call, such as recording and module hooks, are not included.
    """
    scorer = scorers.first
    if scorer.is_additive:
        reason = why_not_triton_on(device)
        if reason is None:
            return "Triton: additive scores"
        path = "chunks" if device == "cpu" else "reference"
        return f"{path}: no Triton kernel, because {reason}"
    if type(scorer).fused is Scorer.fused:
        return f"reference: scorer '{scorer.name}' has no kernel"
    if len(scorers) > 1:
        return f"reference: each head has its own scorer '{scorer.name}'"
    if not _is_softmax(align, training=False):
        return f"reference: alignment '{align.name}' is not a softmax"
    if not _is_softmax(align, training=True):
        return f"fused; reference in training: alignment '{align.name}' has dropout"
    return "fused"


def _is_softmax(align: Alignment, *, training: bool) -> bool:
    before = align.training
    align.train(training)
    try:
        return align.is_softmax
    finally:
        align.train(before)
