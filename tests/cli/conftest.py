"""Fixtures for tests of the command line."""

import pytest
from cli_kit import Shell


@pytest.fixture(scope="session")
def shell(tmp_path_factory):
    """Runs ``zoo`` in new processes, with a cache directory for all tests that do not change it."""
    return Shell(tmp_path_factory.mktemp("shell"))
