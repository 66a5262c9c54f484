"""Files in tar archives are read by their paths."""

import io
import tarfile

import pytest

from zoo import DataError
from zoo.data.text_lines import TextLines


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "tasks.tar.xz"
    with tarfile.open(path, "w:xz") as file:
        for name, text in (("tasks/qa1.txt", b"one\ntwo\n"), ("./qa2.txt", b"three\n")):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            file.addfile(member, io.BytesIO(text))
    return path


def test_a_member_is_read_like_a_file(archive):
    assert list(TextLines(archive / "tasks" / "qa1.txt")) == ["one", "two"]
    lines = TextLines(f"{archive}/qa2.txt")
    assert lines.origin(0) == f"{archive}/qa2.txt:1"


def test_a_missing_member_and_an_invalid_archive_are_named(archive, tmp_path):
    with pytest.raises(DataError, match=r"no file 'tasks/qa3.txt' in the archive; did you mean"):
        TextLines(archive / "tasks" / "qa3.txt")
    (tmp_path / "bad.tar").write_text("text")
    with pytest.raises(DataError, match=r"bad.tar: it is not a valid tar archive"):
        TextLines(tmp_path / "bad.tar" / "a.txt")
