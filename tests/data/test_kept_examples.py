"""Decoded images are read from their files once, by all processes together."""

import multiprocessing
import pickle
import shutil
import threading

import numpy as np
import pytest
from data_kit import CLASSIFIER, ListExamples, compose
from torch.utils.data import DataLoader

from zoo.data import kept_examples
from zoo.data.batches import open_batches
from zoo.data.kept_examples import KeptExamples, keep_decoded
from zoo.errors import DataError
from zoo.plugin import Audio, Blueprint, TensorSchema
from zoo.spec.training import Batching
from zoo_datasets.audio import AudioFolder
from zoo_datasets.captions import Captions
from zoo_datasets.csv import Csv
from zoo_datasets.image_folder import ImageFolder
from zoo_datasets.split import Split
from zoo_preprocessing.image import Image
from zoo_preprocessing.label import Label


class CountedExamples(ListExamples):
    """Counts, also over processes, how often each example is read."""

    def __init__(self, columns, sizes=None):
        super().__init__(columns, sizes)
        self.reads = multiprocessing.Array("i", len(self))

    def __getitem__(self, index):
        self.reads[index] += 1
        return super().__getitem__(index)


def make_examples(count=6, **columns):
    images = [np.full((2, 3, 3), index, np.uint8) for index in range(count)]
    return CountedExamples({"source": images, "target": [f"c{i}" for i in range(count)], **columns})


def test_an_example_is_read_once():
    examples = make_examples()
    kept = KeptExamples(examples, memory=10_000, workers=0)
    for _ in range(2):
        columns = kept.read_many(np.array([4, 1]))
        assert columns["target"] == ["c4", "c1"]
        assert [image.tolist() for image in columns["source"]] == [
            np.full((2, 3, 3), index).tolist() for index in (4, 1)
        ]
        for image in columns["source"]:
            image.fill(99)  # does not change what is kept
    assert list(examples.reads) == [0, 1, 0, 0, 1, 0]
    assert len(kept) == 6
    assert kept.origin(2) == "list:3"
    assert kept.sizes() is None
    assert kept.position_names(2) is None


def test_values_are_restored_with_their_types():
    values = [None, True, 2.5, "ü", ["a", ("b", 1)], {"a": 1}, np.int64(3)]
    values += [Audio(np.arange(3, dtype=np.float32), 8000)]
    arrays = [np.zeros((0, 2), np.float32), np.array(7), np.arange(6.0)[::2]]
    kept = KeptExamples(CountedExamples({"target": [*values, *arrays]}), memory=10_000, workers=0)
    for index, value in enumerate(values):
        first, second = kept[index]["target"], kept[index]["target"]
        assert str(first) == str(second) == str(value)
        assert type(second) is type(value)
    for index, array in enumerate(arrays, len(values)):
        first, second = kept[index]["target"], kept[index]["target"]
        assert first.dtype == second.dtype == array.dtype
        np.testing.assert_array_equal(second, array, strict=True)
    assert set(kept.examples.reads) == {1}


def test_what_cannot_be_stored_is_read_again():
    value = threading.Lock()
    kept = KeptExamples(CountedExamples({"target": [value]}), memory=10_000, workers=0)
    for _ in range(2):
        assert kept[0]["target"] is value
    assert list(kept.examples.reads) == [2]


def test_memory_is_limited(monkeypatch):
    examples = make_examples(20)
    kept = KeptExamples(examples, memory=500, workers=0)
    for _ in range(2):
        for index in range(20):
            assert kept[index]["source"][0, 0, 0] == index
    known = list(examples.reads).count(1)
    assert 0 < known < 20
    assert list(examples.reads) == [1] * known + [2] * (20 - known)
    monkeypatch.setattr(kept_examples, "pickle", None)  # no record is made in vain
    assert kept[19]["target"] == "c19"


def test_errors_are_raised_each_time():
    examples = make_examples(2, target=["a", DataError("is broken", "list:2")])
    kept = KeptExamples(examples, memory=10_000, workers=0)
    for _ in range(2):
        with pytest.raises(DataError, match="is broken"):
            kept[1]
    with pytest.raises(IndexError):
        kept[2]


def test_a_record_that_another_process_wrote_over_is_read_again():
    examples = make_examples()
    kept = KeptExamples(examples, memory=10_000, workers=0)
    assert kept[0]["target"] == "c0"
    kept._used[0] = 0  # as of a process that did not see the record
    assert kept[1]["target"] == "c1"
    assert kept[0]["target"] == "c0"
    assert list(examples.reads)[:2] == [2, 1]


def test_a_size_that_another_process_wrote_over_is_not_read():
    examples = make_examples()
    kept = KeptExamples(examples, memory=10_000, workers=0)
    assert kept[0]["target"] == "c0"
    for size in (2**62, 10_001, 0, -5):
        kept_examples._HEADER.pack_into(kept._memory, int(kept._starts[0]), size, 0)
        assert kept._find(0) is None


def test_only_the_workers_of_one_loader_keep_examples():
    examples = make_examples(12)
    kept = KeptExamples(examples, memory=10_000, workers=2)
    for workers, reads in ((0, 2), (1, 2), (2, 1)):
        examples.reads[:] = [0] * 12
        for _ in range(2):
            loader = DataLoader(
                kept, batch_size=2, num_workers=workers, collate_fn=list, in_order=True
            )
            targets = [example["target"] for batch in loader for example in batch]
            assert targets == [f"c{index}" for index in range(12)]
        assert list(examples.reads) == [reads] * 12
    assert kept[3]["target"] == "c3"
    assert list(examples.reads) == [1] * 12
    alone = KeptExamples(examples, memory=10_000, workers=0)
    process = multiprocessing.get_context("fork").Process(target=alone.__getitem__, args=(5,))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert not alone._starts.any()


def test_pickled_examples_are_plain():
    kept = KeptExamples(ListExamples({"target": ["a"]}, None), memory=1000, workers=0)
    assert type(pickle.loads(pickle.dumps(kept))) is ListExamples


def test_only_what_is_decoded_is_kept():
    examples = make_examples()
    assert keep_decoded(examples, 2) is examples
    examples.decodes_files = lambda: True
    assert isinstance(keep_decoded(examples, 2), KeptExamples)


def test_datasets_of_files_are_kept(tmp_path):
    files = AudioFolder.write_example(tmp_path)
    recordings = AudioFolder(**files).open()
    kept = keep_decoded(recordings, 0)
    first = [kept[index]["source"] for index in range(len(kept))]
    for file in tmp_path.glob("*.wav"):
        file.unlink()
    for index, audio in enumerate(first):
        np.testing.assert_array_equal(kept[index]["source"].samples, audio.samples)
    arrays = Captions.write_example(tmp_path)
    assert not Captions(**arrays).open().decodes_files()
    assert Captions(**arrays | {"images": str(tmp_path)}).open().decodes_files()
    rows = Csv.write_example(tmp_path)
    assert not Csv(**rows).open().decodes_files()
    rows["fields"]["source"]["content"] = "image"
    assert Csv(**rows).open().decodes_files()


def test_memory_is_that_of_the_machine_and_its_processes(monkeypatch):
    monkeypatch.setenv("ZOO_MEMORY", str(8 * 4096))
    examples = make_examples()
    examples.decodes_files = lambda: True
    assert keep_decoded(examples, 0)._room == 4096
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert keep_decoded(examples, 2)._room == 1024
    monkeypatch.setenv("ZOO_MEMORY", "0")
    assert keep_decoded(examples, 2) is examples
    monkeypatch.setenv("ZOO_MEMORY", str(2**66))
    monkeypatch.setattr(kept_examples, "MAX_MEMORY", 2**62)  # more than can be reserved
    assert keep_decoded(examples, 2) is examples
    for free in (None, -1):
        monkeypatch.setattr(kept_examples, "available_bytes", lambda device, free=free: free)
        assert keep_decoded(examples, 2) is examples


@pytest.mark.parametrize("split", [False, True], ids=["folder", "split"])
@pytest.mark.parametrize("workers", [0, 2])
def test_later_epochs_need_no_files(tmp_path, workers, split):
    with _open_images(tmp_path, workers, split=split) as batches:
        first = _images(batches, 0)
        for epoch in range(1, 7):  # batches that are made ahead were begun after the first epoch
            _images(batches, epoch)
        shutil.rmtree(tmp_path)
        later = _images(batches, 7)
    assert sorted(first) == sorted(later) == list(range(6 if split else 12))
    for index, image in first.items():
        assert later[index] == image


def test_evaluation_reads_files_again(tmp_path):
    with _open_images(tmp_path, 0, evaluation=True) as batches:
        assert len(_images(batches, 0)) == 12
        shutil.rmtree(tmp_path)
        with pytest.raises(DataError, match="cannot be read"):
            _images(batches, 0)


def _open_images(folder, workers, *, split=False, **options):
    for index in range(12):
        path = folder / f"c{index % 5}" / f"{index:02}.ppm"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"P6 3 3 255\n" + bytes([index] * 27))
    dataset = Blueprint(ImageFolder, {"folder": str(folder)})
    if split:
        dataset = Blueprint(Split, {"data": dataset, "part": "held-out", "fraction": 0.5})
    preprocessors = {
        "source": Image(size=3, schema=TensorSchema(("B", 3, "H", "W"), "float")),
        "target": Label(
            classes=[f"c{label}" for label in range(5)], schema=TensorSchema(("B",), "integer")
        ),
    }
    model = compose(CLASSIFIER["name"])
    return open_batches(
        dataset, model, preprocessors, Batching(items=4), seed=0, workers=workers, **options
    )


def _images(batches, epoch):
    return {
        example: image.tolist()
        for update in batches.epoch(epoch)
        for example, image in zip(update.examples, update.batches[0]["source"], strict=True)
    }
