"""The path of each attention in the report of a spec."""

import torch
from attention_kit import build

from zoo.plugin import Blueprint
from zoo.spec.attention_path import AttentionPath, find_attention_path
from zoo.spec.composition import check
from zoo_alignment.soft import Soft
from zoo_transformer.scaled_dot import ScaledDot

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class NoDropout(ScaledDot):
    """Scaled dot whose kernel has no dropout."""

    name = "no-dropout"

    def why_not_fused(self, device: torch.device, *, dropout_p: float = 0.0) -> str | None:
        return "the kernel has no dropout" if dropout_p else None


def paths(spec: str, *overrides: str) -> dict[str, AttentionPath]:
    report = check(spec, overrides=overrides)
    return {part.path: part.attention_path for part in report.tree.walk() if part.attention_path}


def test_both_modes_are_reported_and_the_mode_is_kept():
    attention = build(Blueprint.of(NoDropout), align=Blueprint.of(Soft, dropout=0.1)).eval()

    path = find_attention_path(attention, weights_used=False)

    assert path == AttentionPath(DEVICE, None, "the kernel has no dropout")
    assert path.describe() == (
        f"fused path, in training reference path (the kernel has no dropout), on {DEVICE}"
    )
    assert not attention.training
    assert find_attention_path(attention.align, weights_used=False) is None


def test_every_attention_of_a_spec_has_a_path():
    fused = AttentionPath(DEVICE, None, None)
    assert paths("transformer-tiny") == {
        "model.encoder.attention": fused,
        "model.decoder.attention": fused,
    }
    path = paths("transformer-tiny", "model.decoder.attention.align=sparsemax")[
        "model.decoder.attention"
    ]
    assert path.describe() == (
        f"reference path (alignment 'sparsemax' is not a softmax), on {DEVICE}"
    )


def test_weights_that_the_model_uses_are_a_reason():
    (path,) = paths("show-attend-tell-soft-tiny", "model.decoder.attention.scorer=dot").values()
    assert path.evaluation == "the model uses the attention weights"


def test_the_json_report_contains_the_path():
    parts = check("transformer-tiny").as_json()["parts"]
    (encoder,) = [part for part in parts if part["path"] == "model.encoder.attention"]
    assert encoder["attention_path"] == {"device": DEVICE, "evaluation": None, "training": None}
    assert "attention_path" not in parts[0]
