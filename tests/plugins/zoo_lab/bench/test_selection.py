"""The benchmarks of a run and their parameters."""

from typing import ClassVar

import pytest
from benchmark_kit import Peers, case
from tiny_benchmark import TinyBenchmark

from zoo import ZooError
from zoo.interfaces import Entry
from zoo_lab.bench.selection import find_device, select_cases, sweep_cases


class OnGpu(TinyBenchmark):
    name = "on-gpu"
    device_type = "cuda"


AVAILABLE = [Entry(cls, "test", "test", "0") for cls in (Peers, TinyBenchmark, OnGpu)]


def _names(*names, device_type="cpu"):
    return [c.entry.name for c in select_cases(names, device_type, available=AVAILABLE)]


def test_without_names_those_of_the_device_type_are_selected():
    assert _names() == ["peers", "tiny"]
    assert _names(device_type="cuda") == ["on-gpu"]
    assert _names("on-gpu", "tiny") == ["on-gpu", "tiny"]


def test_overrides_set_parameters():
    (found,) = select_cases(["tiny"], "cpu", ["size=3"], AVAILABLE)
    assert found.build().size == 3
    assert (found.changed, found.params) == ({"size": 3}, {"size": 3})
    assert case(TinyBenchmark).params == {"size": 8}


@pytest.mark.parametrize(
    ("names", "overrides", "message"),
    [
        (["tny"], [], "no benchmark named 'tny'; did you mean 'tiny'"),
        (["tiny"], ["size=many"], "--set size=many: size: is 'many'"),
        (["tiny"], ["sze=3"], "unknown key 'sze'; did you mean 'size'"),
        (["tiny"], ["size"], "should be KEY.KEY=VALUE, for example batch=8"),
    ],
)
def test_unknown_names_and_invalid_parameters_raise(names, overrides, message):
    with pytest.raises(ZooError) as caught:
        select_cases(names, "cpu", overrides, AVAILABLE)
    assert message in str(caught.value)


def test_a_sweep_has_each_value_of_each_parameter():
    cases = list(sweep_cases(case(TinyBenchmark)))
    assert [c.changed for c in cases] == [{"size": 8}, {"size": 16}]
    assert [c.build().size for c in cases] == [8, 16]


def test_a_point_of_a_sweep_can_set_several_parameters():
    class Several(TinyBenchmark):
        name = "several"
        sweep: ClassVar = {"size": (8, {"size": 16, "scale": 2})}

        def __init__(self, *, size: int = 8, scale: int = 1) -> None:
            super().__init__(size=size)
            self.scale = scale

    cases = list(sweep_cases(case(Several)))
    assert [c.changed for c in cases] == [{"size": 8}, {"size": 16, "scale": 2}]
    assert [(c.build().size, c.build().scale) for c in cases] == [(8, 1), (16, 2)]


def test_other_devices_raise():
    assert find_device("cpu").type == "cpu"
    with pytest.raises(ZooError, match="benchmarks run on the devices cpu and cuda, not on 'meta'"):
        find_device("meta")
