"""Sizes in the spec of an artifact that do not match its tensors take no memory."""

import copy
import json
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from artifact_kit import Tied, rewrite

import zoo
from zoo.artifact import load, read_header, save
from zoo.errors import ArtifactError
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.testing.laws.cost import run_with_limits, supports_limits

pytestmark = pytest.mark.skipif(not supports_limits(), reason="limits of processes need Linux")
SPECS = ("transformer-ctc-tiny", "ctc-attention-tiny", "ram-tiny", "draw-tiny", "ntm-tiny")


class Table(Tied):
    """A computed buffer whose size is not bounded by the weights."""

    name: ClassVar[str] = "kit-table"

    def __init__(self, *, length: int = 3) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(length), persistent=False)


REGISTRY = ComponentRegistry.from_environment({"ZOO_PLUGINS": "none"}).with_components(
    [Table], plugin="kit"
)


def _with_huge_integers(path: Path, size: int):
    """Yield the name and the file of a copy for each integer in the spec, set to `size`."""
    spec = read_header(path).spec
    nodes = [spec["model"]]
    while nodes:
        node = nodes.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in list(items):
            if isinstance(value, (dict, list)):
                nodes.append(value)
            elif type(value) is int:
                node[key] = size
                other = path.with_name(
                    f"{path.stem}-{len(list(path.parent.iterdir()))}.safetensors"
                )
                other.write_bytes(path.read_bytes())
                rewrite(other, spec=json.dumps(spec))
                node[key] = value
                yield f"{node.get('type')} {key}" if isinstance(node, dict) else str(key), other


def _load_problem(path: Path, registry: ComponentRegistry) -> str:
    try:
        load(path, registry=registry)
    except ArtifactError as error:
        return "MemoryError" if "MemoryError" in str(error) else ""
    return ""


@pytest.mark.parametrize("name", SPECS)
def test_a_huge_size_in_the_spec_of_a_small_artifact_takes_no_memory(name, tmp_path):
    path = save(zoo.compose(name), tmp_path / "model.safetensors")
    assert path.stat().st_size < 1_000_000
    cases = list(_with_huge_integers(path, 10**10))
    tasks = [partial(_load_problem, other, default_registry()) for _, other in cases]
    assert not [
        (case, problem)
        for (case, _), problem in zip(cases, run_with_limits(tasks), strict=True)
        if problem
    ]


def test_a_huge_computed_buffer_raises(tmp_path):
    spec = {"zoo": 1, "name": "kit", "model": {"type": "kit-table"}}
    path = save(zoo.compose(spec, registry=REGISTRY), tmp_path / "model.safetensors")
    assert load(path, registry=REGISTRY).table.shape == (3,)
    header = copy.deepcopy(read_header(path).spec)
    header["model"]["length"] = 10**9
    rewrite(path, spec=json.dumps(header))
    with pytest.raises(ArtifactError, match=r"buffers cannot be computed.*4\.0 GB of memory"):
        load(path, registry=REGISTRY)
