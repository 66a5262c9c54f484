"""Fixtures for tests of training."""

import pytest
from training_kit import write_files


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with a tokenizer and texts."""
    return write_files(tmp_path_factory.mktemp("texts"))
