"""A resumed run notices every change of what shaped it."""

import json
import os
import shutil

import pytest
from training_kit import make_spec, make_story_spec

import zoo
from zoo import ZooError
from zoo.training import inputs
from zoo.training.callback import Callback


@pytest.fixture
def data(files, tmp_path):
    """A copy of the files, and the folder of a run on them."""
    shutil.copytree(files, tmp_path / "texts")
    zoo.train(_spec(tmp_path, 2), output=tmp_path / "run", device="cpu")
    return tmp_path


def _spec(folder, steps):
    return make_spec(folder / "texts", steps=steps)


def _resume(folder, callbacks=()):
    return zoo.train(
        _spec(folder, 3), output=folder / "run", device="cpu", resume=True, callbacks=callbacks
    )


def _edit(path):
    """Swap two letters: the size stays the same, and so does the time of the content."""
    stat = path.stat()
    text = path.read_text()
    place = next(i for i in range(2, len(text)) if text[i] not in (text[0], " ", "\n"))
    path.write_text(text[place] + text[1:place] + text[0] + text[place + 1 :])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_edited_data_of_the_same_length_is_rejected(data):
    _edit(data / "texts" / "train.source")
    with pytest.raises(ZooError, match=r"train\.data: the content of .*train\.source has changed"):
        _resume(data)


def test_files_that_were_copied_or_touched_are_the_same(data):
    for path in (data / "texts").iterdir():
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
    assert _resume(data).step == 3


def test_content_that_was_not_hashed_in_time_cannot_be_compared(files, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "MAX_BYTES", 1)
    monkeypatch.setattr(inputs, "hash_content", lambda path: (_ for _ in ()).throw(OSError))
    shutil.copytree(files, tmp_path / "texts")
    zoo.train(_spec(tmp_path, 2), output=tmp_path / "run", device="cpu")
    monkeypatch.undo()
    (state,) = (tmp_path / "run" / "checkpoints").glob("*/state.json")
    assert json.loads(state.read_text())["inputs"]["data"][0]["sha256"] is None
    _edit(tmp_path / "texts" / "train.source")
    with pytest.raises(ZooError, match=r"the content of .*train\.source has changed"):
        _resume(tmp_path)


def test_edited_validation_data_is_reported(data):
    messages = []

    class Messages(Callback):
        def on_message(self, text):
            messages.append(text)

    path = data / "texts" / "validation.target"
    _edit(path)
    _resume(data, [Messages()])
    assert f"changed: train.validation: the content of {path} has changed" in messages


def test_another_tokenizer_is_rejected(data):
    path = data / "texts" / "words.json"
    tokenizer = json.loads(path.read_text())
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    path.write_text(json.dumps(tokenizer))
    with pytest.raises(ZooError, match=r"preprocessing\.source: the content of the tokenizer has"):
        _resume(data)


def _train_on_stories(folder, steps, *, resume=False, classes=None, answer="h"):
    """Train on stories whose answers are classes; ``answer`` replaces one of them, 'h'."""
    spec = make_story_spec(folder, linear_start=False, steps=steps)
    spec["preprocessing"]["target"] = {"type": "label", "classes": classes}
    for key, split in (("data", "train"), ("validation", "validation")):
        spec["train"][key]["target"] = "label"
        path = folder / f"{split}.stories"
        path.write_text(path.read_text().replace("\th\t", f"\t{answer}\t"))
    return zoo.train(spec, output=folder / "run", device="cpu", resume=resume)


def test_other_classes_are_rejected(tmp_path):
    _train_on_stories(tmp_path, 2)

    with pytest.raises(ZooError, match=r"preprocessing\.target\.classes: not set -> \['h', "):
        _train_on_stories(tmp_path, 3, resume=True, classes=["h", "g", "f", "e"])
    # The spec has not changed, but the classes are fitted to other labels.
    changed = r"preprocessing\.target\.classes: \['e', .*'h'\] -> \['d', .*'g'\]"
    with pytest.raises(ZooError, match=changed):
        _train_on_stories(tmp_path, 3, resume=True, answer="d")
    assert _train_on_stories(tmp_path, 3, resume=True).step == 3
