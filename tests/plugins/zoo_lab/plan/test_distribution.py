"""Memory and communication over devices, against values computed by hand."""

from dataclasses import replace

import pytest

import zoo
from zoo_lab.plan.distribution import WORKSPACE, Distribution, block_bytes
from zoo_lab.plan.plan_options import parse_devices
from zoo_lab.plan.step_memory import StepMemory

AT_PEAK = {"weights": 800, "optimiser": 1600, "gradients": 100, "activations": 4000, "batch": 10}
STEP = StepMemory(
    weights=800,
    gradients=640,
    optimiser=1600,
    activations=5000,
    peak=6810,
    at_peak={**AT_PEAK, "temporary": 300},
    transient_peak=4500,
)
SINGLE = Distribution(
    devices=parse_devices("single"),
    step=STEP,
    averaged=False,
    accumulate=1,
    parameters=600,
    trained=600,
    blocks=(200, 100),
)
DDP = replace(SINGLE, devices=parse_devices("ddp:8"))
FSDP = replace(SINGLE, devices=parse_devices("fsdp:4"))


def test_one_device_has_everything_and_sends_nothing():
    sizes = {"weights": 800, "gradients": 640, "optimiser": 1600, "activations": 5000}
    assert SINGLE.sizes() == sizes
    assert SINGLE.at_peak() == {
        **sizes,
        "gradients": 100,
        "activations": 4010,
        "temporary": 300,
        "workspace": WORKSPACE,
    }
    assert SINGLE.communication() == {}


def test_accumulation_keeps_all_gradients():
    assert replace(SINGLE, accumulate=2).at_peak()["gradients"] == 640


def test_an_average_is_another_copy_of_the_weights():
    assert replace(SINGLE, averaged=True).at_peak()["averaged weights"] == 800
    assert replace(FSDP, averaged=True).at_peak()["averaged weights"] == 200


def test_bfloat16_copies_of_weights():
    step = replace(STEP, at_peak={**STEP.at_peak, "copies": 350})
    assert replace(SINGLE, step=step).at_peak()["bfloat16 weights"] == 350


def test_ddp_all_reduces_the_gradients():
    assert DDP.communication() == {"all-reduce": 2 * 7 * 600 // 8}
    assert DDP.sizes() == SINGLE.sizes()
    assert DDP.at_peak() == {**SINGLE.at_peak(), "gradient buckets": 640}


def test_fsdp_gathers_twice_and_scatters_once():
    assert FSDP.communication() == {"all-gather": 2 * 450, "reduce-scatter": 450}
    assert FSDP.at_peak() == {
        "weights": 200,
        "gradients": 160,
        "optimiser": 400,
        "gathered weights": 200 + 2 * 100,
        "gathered gradients": 100,
        "activations and temporary": 4500,
        "workspace": WORKSPACE,
    }


def test_fsdp_gathers_in_each_forward_pass_and_reduces_in_the_last():
    accumulating = replace(FSDP, accumulate=3)
    assert accumulating.communication() == {"all-gather": 6 * 450, "reduce-scatter": 450}
    assert accumulating.at_peak()["gathered gradients"] == 640


@pytest.mark.parametrize("devices", ["ddp:1", "fsdp:1"])
def test_one_device_of_a_group_sends_nothing(devices):
    assert not any(replace(SINGLE, devices=parse_devices(devices)).communication().values())


def test_bytes_outside_of_the_blocks_and_of_the_largest_block():
    model = zoo.compose("transformer-tiny")
    layers = [*model.encoder.blocks, *model.decoder.blocks]
    sizes = [sum(-(-p.nbytes // 512) * 512 for p in layer.parameters()) for layer in layers]
    total = sum(-(-p.nbytes // 512) * 512 for p in model.parameters())
    assert block_bytes(model) == (total - sum(sizes), max(sizes))
