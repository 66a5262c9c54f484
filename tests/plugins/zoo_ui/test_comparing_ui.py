"""What a spec needs to be trained, where some libraries are missing."""

import pytest

from zoo.plugin import MissingExtra
from zoo.registry.component_registry import default_registry
from zoo.testing.tiny_dataset import TinyDataset

pytest.importorskip("starlette", reason="starlette is not installed")
from zoo_ui.jobs.comparing import find_starters
from zoo_ui.jobs.specs import open_spec


class NeedsLibrary(TinyDataset):
    """Dataset whose library is not installed."""

    name = "needs-library"

    @classmethod
    def write_example(cls, folder):
        raise MissingExtra("dataset 'needs-library'", library="absent", extra="absent")


def test_a_dataset_whose_library_is_missing_is_left_out():
    data = open_spec({}, source="bahdanau-reversal")["data"]
    registry = default_registry().with_components([NeedsLibrary], plugin="test")
    names = ("needs-library", "parallel-text")
    entries = [each for each in registry.components("dataset") if each.name in names]
    assert {each.name for each in entries} == set(names)
    assert [each["dataset"] for each in find_starters(data, entries)] == ["parallel-text"]
