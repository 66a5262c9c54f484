import numpy as np
import pytest
from PIL import Image

from zoo import DataError
from zoo_datasets.image_folder import ImageFolder


def _save(path, *, grey=False, value=7):
    path.parent.mkdir(exist_ok=True)
    shape = (2, 3) if grey else (2, 3, 3)
    Image.fromarray(np.full(shape, value, np.uint8)).save(path)


def test_the_label_is_the_name_of_the_folder(tmp_path):
    _save(tmp_path / "dog" / "b.png", value=1)
    _save(tmp_path / "dog" / "a.png", value=2)
    _save(tmp_path / "cat" / "c.PNG", grey=True, value=3)
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    (tmp_path / ".hidden").mkdir()
    examples = ImageFolder(folder=str(tmp_path)).open()
    assert [examples[i]["target"] for i in range(len(examples))] == ["cat", "dog", "dog"]
    assert [examples[i]["source"][0, 0, 0] for i in range(3)] == [3, 2, 1]
    assert [examples[i]["source"].shape for i in range(2)] == [(2, 3, 1), (2, 3, 3)]
    assert examples.origin(1) == str(tmp_path / "dog" / "a.png")


def test_folders_in_the_folder_of_a_class_are_read_too(tmp_path):
    _save(tmp_path / "cat" / "a.png", value=1)
    (tmp_path / "cat" / "2019").mkdir()
    _save(tmp_path / "cat" / "2019" / "b.png", value=2)
    (tmp_path / "cat" / "2019" / "again").symlink_to(tmp_path / "cat")
    examples = ImageFolder(folder=str(tmp_path)).open()
    found = [(examples[i]["source"][0, 0, 0], examples[i]["target"]) for i in range(len(examples))]
    assert found == [(2, "cat"), (1, "cat")]


def test_an_image_outside_of_the_classes_raises(tmp_path):
    _save(tmp_path / "cat" / "a.png")
    _save(tmp_path / "b.png")
    with pytest.raises(DataError, match=r"b\.png: the file is not in the folder of a class"):
        ImageFolder(folder=str(tmp_path)).open()


def test_the_folder_of_a_class_without_images_raises(tmp_path):
    _save(tmp_path / "cat" / "a.png")
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "b.heic").write_bytes(b"a format that is not read")
    with pytest.raises(DataError, match=r"dog: the folder of a class has no file \.png, \.jpg"):
        ImageFolder(folder=str(tmp_path)).open()


def test_labels_are_read_from_a_file(tmp_path):
    _save(tmp_path / "images" / "1.png", value=1)
    _save(tmp_path / "images" / "2.png", value=2)
    (tmp_path / "labels.tsv").write_text("2.png\tgreen apple\n1.png\tred\n")
    images, labels = str(tmp_path / "images"), str(tmp_path / "labels.tsv")
    examples = ImageFolder(folder=images, labels=labels).open()
    assert [examples[i]["target"] for i in range(len(examples))] == ["green apple", "red"]
    assert examples[0]["source"][0, 0, 0] == 2


def test_an_unreadable_image_raises_with_its_file(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.png").write_bytes(b"not an image")
    examples = ImageFolder(folder=str(tmp_path)).open()
    with pytest.raises(DataError, match=r"cat/a\.png: it is not a valid PNG"):
        examples[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2.png\tred", "'2.png' does not exist"),
        ("1.png", "expected a name, a tab"),
        ("1.png\t", "expected a name, a tab"),
    ],
)
def test_a_wrong_line_of_labels_raises_with_file_and_line(tmp_path, line, message):
    _save(tmp_path / "1.png")
    (tmp_path / "labels.tsv").write_text(f"1.png\tred\n{line}\n")
    with pytest.raises(DataError, match=rf"labels\.tsv:2: .*{message}"):
        ImageFolder(folder=str(tmp_path), labels=str(tmp_path / "labels.tsv")).open()


def test_folders_without_images_raise(tmp_path):
    with pytest.raises(DataError, match=r"no folder with images; expected FOLDER/CLASS"):
        ImageFolder(folder=str(tmp_path)).open()
    with pytest.raises(DataError, match=r"missing: no such folder"):
        ImageFolder(folder=str(tmp_path / "missing")).open()
