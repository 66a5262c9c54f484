import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("ZOO_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture
def published():
    """Return the path of a published data set, or skip the test."""

    def find(name):
        if not (DATA / name).exists():
            pytest.skip(f"{name} is not available; set ZOO_DATA to its folder")
        return DATA / name

    return find


@pytest.fixture
def read_all():
    """Return all examples of an open dataset."""
    return lambda examples: [examples[index] for index in range(len(examples))]
