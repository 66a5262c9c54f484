"""Building without initialisers, and running on the meta device without importing the compiler."""

import json
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import zoo
from zoo.spec.composition import build_on_meta
from zoo.spec.meta import SkipInit, skip_dynamo_import

SPECS = ["bahdanau-2015", "vit-tiny", "gat-tiny", "deepspeech-ctc-tiny"]
CODE = """
import json, sys, zoo
from zoo.spec.meta import skip_dynamo_import
reports = {}
with skip_dynamo_import():
    for name in sys.argv[1:]:
        reports[name] = zoo.check(name).as_json()
imported = "torch._dynamo" in sys.modules
with skip_dynamo_import():
    explain = sys.modules["torch._dynamo"].explain
import torch
assert torch._dynamo.explain is explain
compiled = torch.compile(torch.nn.Linear(2, 3), backend="eager", fullgraph=True)
print(json.dumps([reports, imported, list(compiled(torch.ones(1, 2)).shape)]))
"""


@pytest.mark.slow
def test_check_does_not_import_dynamo_and_reports_the_same():
    done = subprocess.run(
        [sys.executable, "-c", CODE, *SPECS], capture_output=True, text=True, check=True
    )
    reports, imported, shape = json.loads(done.stdout)
    assert not imported
    expected = {name: zoo.check(name).as_json() for name in SPECS}
    assert reports == json.loads(json.dumps(expected))  # tuples become lists
    assert shape == [1, 3]  # torch.compile works afterwards


def test_a_loaded_dynamo_is_not_replaced():
    import torch._dynamo as real

    with skip_dynamo_import():
        assert sys.modules["torch._dynamo"] is real
    assert sys.modules["torch._dynamo"] is real


def test_skip_init_leaves_parameters_and_the_random_state_unchanged():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with SkipInit():
        norm = nn.BatchNorm1d(3)
        nn.Linear(3, 4)
        nn.init.normal_(tensor=norm.weight)
        norm.bias.requires_grad_(False)
    assert torch.equal(torch.get_rng_state(), before)
    assert [p.requires_grad for p in norm.parameters()] == [True, False]  # not a value
    assert torch.equal(norm.running_var, torch.ones(3))  # buffers are computed


class _Operations(TorchDispatchMode):
    """Records the names of the operations that run."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_building_on_the_meta_device_runs_no_initialiser():
    spec = zoo.load_spec("bahdanau-2015")
    with _Operations() as operations:
        tree = build_on_meta(spec)
    assert all(p.is_meta for p in tree.part.parameters())
    assert "empty" in operations.names
    assert not {"normal_", "uniform_", "copy_"} & operations.names
