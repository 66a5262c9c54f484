"""Fixtures for tests of the command line."""

import pytest
from cli_kit import Shell
from recipe_kit import write_recipe


@pytest.fixture(scope="session")
def shell(tmp_path_factory):
    """Runs ``zoo`` in new processes, with a cache directory for all tests that do not change it."""
    return Shell(tmp_path_factory.mktemp("shell"))


@pytest.fixture
def recipe_folder(tmp_path, monkeypatch):
    """The current folder, with the recipe ``letters.yaml`` and its data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZOO_DATA", "")  # restored after --data
    write_recipe(tmp_path)
    return tmp_path
