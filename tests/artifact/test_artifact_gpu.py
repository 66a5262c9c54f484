"""Loading to a CUDA device, and probes across devices."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from zoo.artifact import load, read_header, save, verify
from zoo.registry.component_registry import default_registry
from zoo.spec.composition import compose

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
SPECS = sorted(name for name in default_registry().specs if name.endswith("-tiny"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_are_loaded_to_device_and_dtype(tmp_path: Path, dtype: str) -> None:
    model = compose("bahdanau-reversal")
    file = save(model, tmp_path / "m.safetensors")
    loaded = load(file, device="cuda", dtype=dtype, verify=True)
    assert {(p.device.type, p.dtype) for p in loaded.parameters()} == {
        ("cuda", getattr(torch, dtype))
    }
    expected = model.to(getattr(torch, dtype)).state_dict()
    assert all(torch.equal(t.cpu(), expected[name]) for name, t in loaded.state_dict().items())


@pytest.mark.parametrize("name", ["bahdanau-reversal", *SPECS])
def test_probe_of_one_device_matches_on_the_other(tmp_path: Path, name: str) -> None:
    random = torch.cuda.get_rng_state()
    for device, other in (("cuda", "cpu"), ("cpu", "cuda")):
        file = save(compose(name, device=device), tmp_path / f"{device}.safetensors")
        probe = read_header(file).probe or {}
        assert "skipped" not in probe, probe
        found = verify(file, device=other)
        assert found.ok, found.checks[-1].detail
    assert torch.equal(torch.cuda.get_rng_state(), random)
    hashes = [read_header(tmp_path / f"{d}.safetensors").hashes for d in ("cuda", "cpu")]
    assert hashes[0] == hashes[1]
