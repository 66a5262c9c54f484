"""A run writes its files into its folder, not where symbolic links in it refer to."""

import pytest
from training_kit import make_spec

from zoo import ZooError, train
from zoo.training.run_log import open_to_append


def test_files_of_a_run_replace_links(files, tmp_path):
    folder, outside = tmp_path / "run", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    names = ("spec.yaml", "model.safetensors", "loss.png")
    for name in names:
        (outside / name).write_bytes(b"precious")
        (folder / name).symlink_to(outside / name)
    train(make_spec(files, steps=1), output=folder)
    for name in names:
        assert (outside / name).read_bytes() == b"precious"
        assert (folder / name).is_file()
        assert not (folder / name).is_symlink()


@pytest.mark.parametrize("exists", [True, False])
def test_a_log_that_is_a_link_is_not_written(files, tmp_path, exists):
    folder, outside = tmp_path / "run", tmp_path / "precious"
    folder.mkdir()
    if exists:
        outside.write_text("precious")
    (folder / "log.jsonl").symlink_to(outside)
    with pytest.raises(ZooError, match=r"log\.jsonl cannot be written: it is a symbolic link"):
        train(make_spec(files, steps=1), output=folder, resume=True)
    assert outside.exists() == exists
    assert not exists or outside.read_text() == "precious"


def test_a_link_is_not_followed_to_append(tmp_path):
    (tmp_path / "target").write_text("precious")
    (tmp_path / "log").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic link"):
        open_to_append(tmp_path / "log", 0)
    assert (tmp_path / "target").read_text() == "precious"
    with open_to_append(tmp_path / "new", 0) as file:
        file.write("a\nb\n")
    with open_to_append(tmp_path / "new", 2) as file:
        file.write("c\n")
    assert (tmp_path / "new").read_text() == "a\nc\n"
