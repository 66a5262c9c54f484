"""Losses that are read later than they are computed."""

import math

import pytest
import torch

from zoo.training.loss_lines import LossRecord, NotFinite, StepPosition
from zoo.training.step import StepOutput

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def add(record, step, loss, norm=None, stops=None, device="cpu"):
    values = [None if each is None else torch.tensor(each, device=device) for each in (norm, stops)]
    output = StepOutput(torch.tensor(loss, device=device), *values)
    record.add(StepPosition(step, 0, step - 1), output)


@pytest.mark.parametrize("device", DEVICES)
def test_values_of_steps_that_are_added_while_others_are_copied_are_read_after_them(device):
    record = LossRecord([0.5], [1.5])
    add(record, 1, 2.0, 3.0, device=device)
    add(record, 2, 4.0, 5.0, device=device)
    record.start()
    assert record.copies == (device == "cuda")
    add(record, 3, 6.0, 7.0, device=device)
    record.finish()
    assert not record.copies
    assert record.has_arrived
    assert (record.losses, record.norms) == ([0.5, 2.0, 4.0], [1.5, 3.0, 5.0])
    record.read()
    assert (record.losses, record.norms) == ([0.5, 2.0, 4.0, 6.0], [1.5, 3.0, 5.0, 7.0])


def test_a_second_start_reads_the_values_of_the_first():
    record = LossRecord()
    for step in (1, 2):
        add(record, step, float(step))
        record.start()
    record.finish()
    assert record.losses == [1.0, 2.0]


def test_nothing_is_read_without_steps():
    record = LossRecord()
    record.read()
    assert not record.losses


@pytest.mark.parametrize(
    ("loss", "norm", "what"), [(math.nan, 1.0, "loss"), (1.0, math.inf, "norm")]
)
def test_a_value_that_is_not_finite_names_its_step(loss, norm, what):
    record = LossRecord()
    add(record, 1, 1.0, 1.0)
    add(record, 2, loss, norm)
    record.start()
    add(record, 3, math.nan, 1.0)
    with pytest.raises(NotFinite, match=f"{what} of step 2 is (nan|inf)") as caught:
        record.finish()
    assert caught.value.position.step == 2


def test_the_signals_of_processes_are_read():
    record = LossRecord()
    add(record, 1, 1.0, stops=0.0)
    record.read()
    assert not record.stop
    add(record, 2, 1.0, stops=2.0)
    record.start()
    assert not record.stop
    record.finish()
    assert record.stop
    assert record.losses == [1.0, 1.0]


def test_steps_can_have_different_numbers_of_values():
    """As those whose examples are all skipped."""
    record = LossRecord()
    add(record, 1, 1.0)
    add(record, 2, 2.0, stops=0.0)
    add(record, 3, 3.0)
    record.read()
    assert record.losses == [1.0, 2.0, 3.0]
