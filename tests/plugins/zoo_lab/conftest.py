"""Fixtures for tests of the laboratory."""

import gc

import pytest
from recipe_kit import write_recipe


@pytest.fixture(scope="module", autouse=True)
def objects_of_other_tests():
    """Exclude the objects of earlier tests from garbage collection, which each benchmark runs."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def recipe_folder(tmp_path, monkeypatch):
    """The current folder, with the recipe ``letters.yaml`` and its data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZOO_DATA", "")  # restored after --data
    write_recipe(tmp_path)
    return tmp_path
