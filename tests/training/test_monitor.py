"""The monitored value is checked before the training."""

import pytest

import zoo
from zoo.spec.spec import load_spec
from zoo.training.monitor import check_monitor, value_names

SPEC = """zoo: 1
name: small
extends: transformer-tiny
metrics: [rouge-google, bleu]
train:
  data: {type: parallel-text, source: a, target: b}
  VALIDATION
  optimiser: {type: adam, lr: 0.001}
  steps: 3
  evaluate: {monitor: MONITOR}
"""
VALIDATION = "validation: {type: parallel-text, source: a, target: b}"


def _check(tmp_path, monitor, validation=VALIDATION):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("MONITOR", monitor).replace("VALIDATION", validation))
    spec = load_spec(path)
    check_monitor(spec, spec.sections.train.build())


@pytest.mark.parametrize("monitor", ["loss", "bleu", "rouge-1"])
def test_loss_and_values_of_the_metrics_can_be_monitored(tmp_path, monitor):
    _check(tmp_path, monitor)


def test_an_unknown_value_raises_with_its_line_and_the_nearest_name(tmp_path):
    with pytest.raises(zoo.SpecError, match=r"spec\.yaml:10:23: .*'bleuu' is not a .*'bleu'"):
        _check(tmp_path, "bleuu")


def test_an_unknown_value_of_a_list_raises_with_its_index(tmp_path):
    _check(tmp_path, "[loss, bleu]")
    match = r"spec\.yaml:10:30: train\.evaluate\.monitor\[1\]: 'bleuu' is not a .*'bleu'"
    with pytest.raises(zoo.SpecError, match=match):
        _check(tmp_path, "[loss, bleuu]")
    with pytest.raises(zoo.SpecError, match=r"monitor\[1\]: 'loss' is listed twice"):
        _check(tmp_path, "[loss, loss]")


def test_a_list_has_values_and_no_mode(tmp_path):
    with pytest.raises(zoo.SpecError, match=r"train\.evaluate\.monitor: 'monitor' is empty"):
        _check(tmp_path, "[]")
    match = r"spec\.yaml:10:43: train\.evaluate\.mode: 'mode' needs one value in 'monitor'"
    with pytest.raises(zoo.SpecError, match=match):
        _check(tmp_path, "[loss, bleu], mode: max")


def test_a_metric_needs_validation_data(tmp_path):
    _check(tmp_path, "loss", "seed: 1")
    with pytest.raises(zoo.SpecError, match=r"'monitor' need data to evaluate on"):
        _check(tmp_path, "bleu", "seed: 1")


def test_value_names_of_metrics():
    spec = load_spec("transformer-tiny", overrides=["metrics=[bleu]"])
    assert value_names([m.build() for m in spec.sections.metrics]) == ["bleu"]
