"""Data sets are compared with their checksums."""

import os

import pytest
from recipe_kit import write_recipe

from zoo import DataError, ZooError
from zoo_lab.reproduce.data_check import check_data, data_folder, find_missing, set_data_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_recipe(tmp_path)
    monkeypatch.setenv("ZOO_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "letters"


def test_the_checksums_are_returned(folder):
    sums = check_data(["letters"])
    assert len(sums) == 4
    assert len(sums["letters/train.source"]) == 64
    (folder / "SHA256SUMS").write_text(f"{sums['letters/train.source']} *train.source\n")
    assert list(check_data(["letters"])) == ["letters/train.source"]


def test_missing_and_changed_files_are_named(folder):
    (folder / "train.source").unlink()
    (folder / "train.target").write_text("other\n")
    with pytest.raises(DataError) as caught:
        check_data(["letters"])
    assert str(caught.value) == (
        f"{folder}: train.source is missing; train.target has another content than SHA256SUMS "
        "lists; copy the data set again"
    )


def test_a_missing_folder_and_missing_checksums_are_named(folder, monkeypatch):
    with pytest.raises(DataError, match=r"no folder of the data set 'words'.*which has letters"):
        check_data(["letters", "words"])
    assert find_missing(["letters", "words"]) == ["words"]
    (folder.parent / "SHA256SUMS").unlink()
    with pytest.raises(DataError, match="no SHA256SUMS lists its files"):
        check_data(["letters"])
    monkeypatch.setenv("ZOO_DATA", str(folder / "none"))
    with pytest.raises(ZooError, match="which is not a folder"):
        check_data(["letters"])
    monkeypatch.delenv("ZOO_DATA")
    with pytest.raises(ZooError, match="the environment variable ZOO_DATA is not set"):
        check_data(["letters"])
    assert find_missing(["letters"]) == ["letters"]


def test_default_folder_is_used_if_the_variable_is_not_set(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZOO_DATA", "elsewhere")
    set_data_folder()
    assert os.environ["ZOO_DATA"] == "elsewhere"
    monkeypatch.delenv("ZOO_DATA")
    set_data_folder()
    assert data_folder() == tmp_path / "data"
    set_data_folder(tmp_path)
    assert data_folder() == tmp_path
