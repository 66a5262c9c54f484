"""Every file of a run folder, damaged in every way: one sentence, or a run as if it were whole."""

import contextlib
import json
import os
import shutil
import signal

import pytest
from training_kit import make_spec

import zoo
from zoo import ZooError

NEWEST = "checkpoints/step-00000002"
BEST = "checkpoints/step-00000001"
NOT_FILES = ("directory", "pipe", "device")
BYTES = ("missing", *NOT_FILES, "empty", "half", "flipped early", "flipped", "flipped late")
JSON = (*BYTES, "longer", "a list", "a number", "an empty object", "deep", "not UTF-8")
FILES = {
    "log.jsonl": JSON,
    "spec.yaml": (*NOT_FILES, "missing", "half"),
    "loss.png": (*NOT_FILES, "missing"),
    "model.safetensors": BYTES,
    "checkpoints": ("missing", "pipe", "half"),
    NEWEST: ("missing", *NOT_FILES, "empty"),
    f"{NEWEST}/model.safetensors": BYTES,
    f"{NEWEST}/optimiser.safetensors": BYTES,
    f"{NEWEST}/state.json": JSON,
    f"{BEST}/model.safetensors": BYTES,
    f"{BEST}/state.json": ("missing", "pipe", "half"),
}
REPLACED = {"spec.yaml", "loss.png", "model.safetensors"}
"""Files that the training writes again, whatever was in them."""


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _directory(path):
    _remove(path)
    path.mkdir()


def _pipe(path):
    _remove(path)
    os.mkfifo(path)


def _device(path):
    _remove(path)
    path.symlink_to("/dev/zero")


def _writer(change):
    def write(path):
        content = b"x" * 64 if path.is_dir() else path.read_bytes()
        if path.is_dir():
            shutil.rmtree(path)
        path.write_bytes(change(content))

    return write


def _flip(content, place):
    index = min(int(len(content) * place), len(content) - 1)
    return content[:index] + bytes([content[index] ^ 0x11]) + content[index + 1 :]


DAMAGES = {
    "missing": _remove,
    "directory": _directory,
    "pipe": _pipe,
    "device": _device,
    "empty": _writer(lambda content: b""),
    "half": _writer(lambda content: content[: len(content) // 2]),
    "longer": _writer(lambda content: content + b"\0\xff{"),
    "flipped early": _writer(lambda content: _flip(content, 0.0)),
    "flipped": _writer(lambda content: _flip(content, 0.5)),
    "flipped late": _writer(lambda content: _flip(content, 0.98)),
    "a list": _writer(lambda content: b"[1, 2]\n"),
    "a number": _writer(lambda content: b"3\n"),
    "an empty object": _writer(lambda content: b"{}\n"),
    "deep": _writer(lambda content: b"[" * 100_000),
    "not UTF-8": _writer(lambda content: b"\xff\xfe" * 40),
}


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    """The folder of a run whose best checkpoint is not its newest."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    zoo.train(_spec(files, 2), output=folder, device="cpu")
    state = json.loads((folder / NEWEST / "state.json").read_text())["state"]
    assert state["best"]["step"] == 1
    return folder


def _spec(files, steps):
    return make_spec(
        files,
        steps=steps,
        log={"every": 1},
        evaluate={"every": 1, "monitor": "loss", "mode": "max"},
    )


@contextlib.contextmanager
def _time_limit(seconds):
    def stop(number, frame):
        raise TimeoutError

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.parametrize(
    ("name", "damage"), [(name, damage) for name in FILES for damage in FILES[name]]
)
def test_a_damaged_file_is_one_sentence(files, finished, tmp_path, name, damage):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    DAMAGES[damage](folder / name)
    whole = name in REPLACED and damage not in NOT_FILES
    whole |= damage == "missing" and name in ("log.jsonl", "checkpoints", NEWEST)
    either = name == "log.jsonl" and damage in ("longer", "flipped", "flipped late")
    problem = None
    with _time_limit(30):
        try:
            zoo.train(_spec(files, 3), output=folder, device="cpu", resume=True)
        except ZooError as error:
            problem = str(error)
    if problem is None:
        assert whole or either
        return
    assert not whole, problem
    assert str(folder) in problem
    assert "\n" not in problem
    assert len(problem) < 600


@pytest.mark.parametrize("change", ["empty", "flipped", "flipped late", "half"])
def test_a_damaged_model_of_a_finished_run_is_saved_again(files, finished, tmp_path, change):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    DAMAGES[change](folder / "model.safetensors")
    zoo.train(_spec(files, 2), output=folder, device="cpu", resume=True)
    assert zoo.load(folder / "model.safetensors", verify=True)


def test_swapped_checkpoints_are_rejected(files, finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    shutil.copy(folder / BEST / "model.safetensors", folder / NEWEST / "model.safetensors")
    with pytest.raises(ZooError, match=r"model\.safetensors is damaged: its content changed after"):
        zoo.train(_spec(files, 3), output=folder, device="cpu", resume=True)
    shutil.rmtree(folder / NEWEST)
    (folder / BEST).rename(folder / NEWEST)
    with pytest.raises(ZooError, match=r"state\.json is damaged: it belongs to step 1; remove"):
        zoo.train(_spec(files, 3), output=folder, device="cpu", resume=True)


def test_checkpoints_of_previous_versions_have_no_hashes(files, finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    for path in folder.glob("checkpoints/*/state.json"):
        state = json.loads(path.read_text())
        del state["sha256"], state["format"]
        path.write_text(json.dumps(state))
    assert zoo.train(_spec(files, 3), output=folder, device="cpu", resume=True).step == 3


def test_a_checkpoint_of_another_training_loop_is_rejected(files, tmp_path):
    model = zoo.compose(_spec(files, 2))
    optimiser = zoo.optimiser(_spec(files, 2), model)
    zoo.save_checkpoint(tmp_path / "checkpoints", model, optimiser, step=4)
    for resume, message in ((True, "zoo.load_checkpoint"), (False, "contains a run")):
        with pytest.raises(ZooError, match=message):
            zoo.train(_spec(files, 9), output=tmp_path, device="cpu", resume=resume)
