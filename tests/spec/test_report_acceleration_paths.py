"""Which parts are accelerated, in the report of a spec."""

from dataclasses import asdict

import pytest
import torch

from zoo.spec.report import AccelerationPath
from zoo.training.composing import check

pytest.importorskip("zoo_fast", reason="the fast lane is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def paths(spec: str, *overrides: str) -> dict[str, list[AccelerationPath]]:
    found: dict[str, list[AccelerationPath]] = {}
    for path in check(spec, overrides=overrides).paths:
        found.setdefault(path.acceleration, []).append(path)
    return found


def test_equal_paths_are_one():
    (path,) = paths("transformer-tiny")["inner-product-attention"]
    assert path.modules == (
        "encoder.blocks.*.attention",
        "decoder.blocks.*.attention",
        "decoder.blocks.*.cross",
    )
    assert path.describe() == "accelerated"


def test_a_reason_is_described():
    encoder, decoder = paths("transformer-tiny", "model.decoder.attention.align=sparsemax")[
        "inner-product-attention"
    ]
    assert (encoder.evaluation, encoder.training) == (None, None)
    assert decoder.describe() == "reference path (alignment 'sparsemax' is not known as a softmax)"


def test_both_modes_are_described():
    (path,) = paths("transformer-tiny")["fused-decoding"]
    assert path.training == "gradients are enabled"
    assert path.describe().endswith("; in training: reference path (gradients are enabled)")


def test_the_json_report_contains_the_paths():
    report = check("transformer-tiny")
    assert report.as_json()["paths"] == [asdict(path) for path in report.paths]
    assert {path.device for path in report.paths} == {DEVICE}
