import numpy as np
import pytest
import soundfile

from zoo import DataError, ZooError
from zoo_datasets.audio import AudioFolder

SAMPLES = np.array([0.0, 0.5, -0.5, 0.25])


def _write(path, repeats=1, *, rate=8000):
    path.parent.mkdir(exist_ok=True)
    soundfile.write(path, np.tile(SAMPLES, repeats), rate)


def test_transcripts_name_the_recordings(tmp_path, read_all):
    _write(tmp_path / "a.wav")
    _write(tmp_path / "b.flac", 3, rate=16_000)
    (tmp_path / "text.tsv").write_text("b.flac\tgood morning\na.wav\tyes\n")
    dataset = AudioFolder(folder=str(tmp_path), transcripts=str(tmp_path / "text.tsv"))
    examples = dataset.open()
    first, second = read_all(examples)
    assert [first["target"], second["target"]] == ["good morning", "yes"]
    assert [first["source"].rate, second["source"].rate] == [16_000, 8000]
    np.testing.assert_allclose(second["source"].samples, SAMPLES, atol=1e-4)
    assert list(examples.sizes()) == [12, 4]
    assert examples.origin(0) == str(tmp_path / "b.flac")
    assert dataset.fields()["target"].content == "text"


def test_labels_are_names_of_folders(tmp_path, read_all):
    for name in ("yes/1.wav", "no/2.wav", "no/1.wav"):
        _write(tmp_path / name)
    dataset = AudioFolder(folder=str(tmp_path), target="label")
    assert [example["target"] for example in read_all(dataset.open())] == ["no", "no", "yes"]
    assert dataset.fields()["target"].content == "label"


def test_labels_are_the_first_part_of_the_names_without_folders(tmp_path, read_all):
    for name in ("7_jackson_0.wav", "3_theo_1.wav"):
        _write(tmp_path / name)
    examples = AudioFolder(folder=str(tmp_path), target="label").open()
    assert [example["target"] for example in read_all(examples)] == ["3", "7"]


def test_unreadable_audio_raises_with_its_file_when_it_is_read(tmp_path):
    _write(tmp_path / "yes" / "a.wav")
    (tmp_path / "yes" / "b.wav").write_bytes(b"not audio")
    examples = AudioFolder(folder=str(tmp_path), target="label").open()
    assert list(examples.sizes()) == [4, 0]
    with pytest.raises(DataError, match=r"yes/b\.wav: it is not a WAV file"):
        examples[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [("c.wav\tno", r"'c\.wav' does not exist"), ("a.wav", "expected a name, a tab")],
)
def test_a_wrong_transcript_raises_with_file_and_line(tmp_path, line, message):
    _write(tmp_path / "a.wav")
    (tmp_path / "text.tsv").write_text(f"a.wav\tyes\n{line}\n")
    with pytest.raises(DataError, match=rf"text\.tsv:2: .*{message}"):
        AudioFolder(folder=str(tmp_path), transcripts=str(tmp_path / "text.tsv")).open()


def test_a_folder_without_recordings_raises(tmp_path):
    with pytest.raises(DataError, match=f"{tmp_path}: the folder has no recordings"):
        AudioFolder(folder=str(tmp_path), target="label").open()


def test_texts_need_transcripts():
    with pytest.raises(ZooError, match="set 'transcripts', or target: label"):
        AudioFolder(folder="a")


def test_recordings_of_a_npz_file(tmp_path, read_all):
    samples = (SAMPLES * 32768).astype(np.int16)
    np.savez(tmp_path / "a.npz", **{"7_theo_0": samples, "3_theo_1": SAMPLES})
    params = {"folder": str(tmp_path / "a.npz"), "rate": 8000}
    examples = AudioFolder(**params, target="label").open()
    assert [example["target"] for example in read_all(examples)] == ["3", "7"]
    for example in read_all(examples):
        np.testing.assert_array_equal(example["source"].samples, SAMPLES.astype(np.float32))
        assert example["source"].rate == 8000
    assert list(examples.sizes()) == [4, 4]
    assert examples.origin(1) == f"{tmp_path}/a.npz[7_theo_0]"
    (tmp_path / "text.tsv").write_text("7_theo_0\tseven\n")
    examples = AudioFolder(**params, transcripts=str(tmp_path / "text.tsv")).open()
    assert [example["target"] for example in read_all(examples)] == ["seven"]
    with pytest.raises(DataError, match=r"a\.npz: set 'rate'"):
        AudioFolder(folder=params["folder"], target="label").open()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3)), r"expected samples \[L\].*float64 \[2, 3\]"),
        (np.zeros(3, np.uint8), r"expected samples \[L\].*uint8 \[3\]"),
        (np.array([0.0, np.nan]), "a sample is NaN or infinite"),
    ],
)
def test_wrong_arrays_raise_with_their_names(tmp_path, array, message):
    np.savez(tmp_path / "a.npz", yes_1=array)
    dataset = AudioFolder(folder=str(tmp_path / "a.npz"), rate=8000, target="label")
    with pytest.raises(DataError, match=rf"a\.npz\[yes_1\]: {message}"):
        dataset.open()[0]
