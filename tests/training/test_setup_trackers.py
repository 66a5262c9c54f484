"""Trackers are checked before a run starts: known, installed, and allowed by the caller."""

import pytest
from train_command_kit import run_zoo, write_spec
from training_kit import make_spec, write_files

import zoo


def _train(folder, *trackers, **options):
    spec = make_spec(write_files(folder), steps=1, log={"trackers": list(trackers)})
    zoo.train(spec, output=folder / "run", device="cpu", **options)


@pytest.mark.parametrize(("name", "package"), [("wandb", "wandb"), ("comet_ml", "comet-ml")])
def test_a_tracker_that_is_not_installed_is_an_error(tmp_path, name, package):
    with pytest.raises(zoo.SpecError, match=f"'{name}' is not installed; .* pip install {package}"):
        _train(tmp_path, name, allow_trackers=[name])
    assert not (tmp_path / "run").exists()


def test_an_unknown_tracker_is_an_error(tmp_path):
    with pytest.raises(zoo.SpecError, match=r"'tensorbord' is not a tracker.*'tensorboard'"):
        _train(tmp_path, "tensorbord")


def test_a_tracker_that_writes_files_needs_no_permission(tmp_path):
    _train(tmp_path, "tensorboard")
    assert list((tmp_path / "run").rglob("events.out.tfevents*"))


def test_a_spec_alone_does_not_upload(tmp_path, monkeypatch):
    uploads = _register_uploader(monkeypatch)
    with pytest.raises(zoo.SpecError, match=r"'uploader' can send .*--allow-tracker uploader"):
        _train(tmp_path, "uploader")
    assert not uploads
    assert not (tmp_path / "run").exists()
    _train(tmp_path, "uploader", allow_trackers=["uploader"])
    assert uploads


def test_the_command_names_file_and_line(tmp_path):
    spec = make_spec(write_files(tmp_path), log={"trackers": ["tensorboard", "wandb"]})
    path = write_spec(tmp_path, spec)
    line = path.read_text().splitlines().index("    - wandb") + 1
    code, _, errors = run_zoo(
        tmp_path, "train", path, "--device", "cpu", "--allow-tracker", "wandb"
    )
    assert code == 1
    assert errors.startswith(f"{path}:{line}:")
    assert errors.count("\n") == 1


def _register_uploader(monkeypatch):
    """Register a tracker with Accelerate; return the list that it uploads to."""
    from accelerate import tracking

    uploads = []

    class Uploader(tracking.GeneralTracker):
        name = "uploader"
        requires_logging_directory = False
        tracker = None

        def __init__(self, run_name, **options):
            super().__init__()

        def store_init_configuration(self, values):
            uploads.append(values)

        def log(self, values, step, **options):
            uploads.append(values)

    monkeypatch.setitem(tracking.LOGGER_TYPE_TO_CLASS, "uploader", Uploader)
    return uploads
