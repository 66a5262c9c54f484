"""Files and folders that the parameters of a dataset name."""

import tarfile

from zoo.data.named_files import named_paths


def test_files_and_folders_are_found_and_types_are_not_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").touch()
    (tmp_path / "images").mkdir()
    (tmp_path / "csv").touch()
    with tarfile.open(tmp_path / "b.tar", "w") as archive:
        archive.add(tmp_path / "a.txt", "c.txt")
    parameters = {"type": "csv", "data": {"files": ["a.txt", "b.tar/c.txt"], "folder": "images"}}
    assert named_paths(parameters) == [tmp_path / name for name in ("a.txt", "b.tar", "images")]


def test_parameters_that_look_like_paths_are_not_files():
    assert named_paths({"column": "$PRICE", "name": "a\0b", "long": "x" * 5000}) == []
