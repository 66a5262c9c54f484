"""What a spec needs to be trained, where some libraries are missing."""

import warnings

import pytest

from zoo.plugin import MissingExtra
from zoo.registry.component_registry import default_registry
from zoo.testing.tiny_dataset import TinyDataset

pytest.importorskip("starlette", reason="starlette is not installed")
from zoo_ui.jobs.comparing import find_starters
from zoo_ui.jobs.specs import open_spec


class BrokenLibrary(TinyDataset):
    """Dataset whose library fails, with a warning."""

    name = "broken-library"

    @classmethod
    def write_example(cls, folder):
        warnings.warn("of the library", UserWarning, stacklevel=1)
        raise AttributeError("of the library")


class NeedsLibrary(TinyDataset):
    """Dataset whose library is not installed."""

    name = "needs-library"

    @classmethod
    def write_example(cls, folder):
        raise MissingExtra("dataset 'needs-library'", library="absent", extra="absent")


def test_datasets_whose_library_is_missing_or_fails_are_left_out():
    data = open_spec({}, source="bahdanau-reversal")["data"]
    registry = default_registry().with_components([BrokenLibrary, NeedsLibrary], plugin="test")
    names = ("broken-library", "needs-library", "parallel-text")
    entries = [each for each in registry.components("dataset") if each.name in names]
    assert {each.name for each in entries} == set(names)
    assert [each["dataset"] for each in find_starters(data, entries)] == ["parallel-text"]
