import pytest
from demo_kit import save_models
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.hub.shipped import shipped_models
from zoo_demo.models import READER, TRANSLATORS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo")
    save_models(path)
    return path


@pytest.fixture
def small_models(folder, monkeypatch):
    """The demo loads the small models of the folder instead of the shipped ones."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(
        "zoo_demo.models.load", lambda name, **options: zoo.load(f"./{name}", **options)
    )


def run(*arguments):
    return CliRunner().invoke(app, ["demo", *map(str, arguments)])


def test_the_demo_translates_recognises_saves_and_verifies(folder, small_models, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("zoo_demo.translation.MAX_TOKENS", 6)
    done = run("Onde fica 日本 $_{$ ?", "-o", "out")
    assert done.exit_code == 0, done.output
    lines = [line.rstrip() for line in done.output.splitlines()]
    assert "│ fica" in done.output
    assert "of 10 digits recognised correctly" in done.output
    for check in ("header", "hashes", "spec", "probe"):
        assert any(line.split()[:2] == [check, "ok"] for line in lines)
    assert "the reloaded model computes the same translations and scores" in lines
    assert "\x1b" not in done.output
    model = "tatoeba-por-eng-bahdanau.safetensors"
    out = folder / "out"
    written = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    digits = {f"digits/{number}.png" for number in range(10)}
    assert written == {"alignment-1.png", "glimpses.png", model, *digits}
    assert zoo.load(out / model).spec["name"] == "bahdanau-small"


def test_empty_sentences_are_rejected_before_models_are_loaded(folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = run("Sim.", " ", "-o", "empty")
    assert "sentence 2 is empty" in str(done.exception)
    assert not (folder / "empty").exists()


def test_a_missing_model_names_a_way_to_continue(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("zoo_demo.models.TRANSLATORS", {"Transformer": "no-such-model"})
    done = run()
    expected = (
        "the demo needs shipped weights ('zoo demo --train' needs none): no file or catalogue"
    )
    assert expected in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_before_the_first_file_leaves_no_folder(folder, small_models, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("zoo_demo.translation.translate", interrupt)
    done = run("Sim.", "-o", "interrupted")
    assert done.exit_code == 130
    assert not (folder / "interrupted").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "3"], "--steps cannot be used without --train"),
        (["--set", "a=1", "--seed", "0"], "--set and --seed cannot be used without --train"),
        (["--train", "a", "b"], "--train takes one spec, but 2 are given: a, b"),
    ],
)
def test_options_of_the_training_need_it(arguments, message):
    assert message in str(run(*arguments).exception)


def test_all_models_of_the_demo_are_shipped_if_one_is():
    shipped = {entry.name for entry in shipped_models()}
    if not shipped & {READER, *TRANSLATORS.values()}:
        pytest.skip("no weights of the demo are shipped")
    assert {READER, *TRANSLATORS.values()} <= shipped


def test_training_saves_and_reloads_a_model(tmp_path):
    done = run("--train", "--steps", "30", "-o", tmp_path / "out")
    assert "unseen sequences" in done.output
    assert "attention weights (rows: output tokens, columns: input tokens)" in done.output
    assert "identical logits" in done.output
    assert (tmp_path / "out" / "alignment.png").read_bytes().startswith(b"\x89PNG")
    assert zoo.load(tmp_path / "out" / "model.safetensors").spec["name"] == "bahdanau-reversal"


@pytest.mark.parametrize("spec", ["gpt2-tiny", "deepspeech-ctc-tiny", "show-attend-tell-soft-tiny"])
def test_training_rejects_models_that_are_not_seq2seq_over_tokens(spec):
    error = run("--train", spec).exception
    assert f"{spec} is not a sequence-to-sequence model" in str(error)


def test_the_folder_is_created_before_the_training(tmp_path):
    (tmp_path / "file").touch()
    done = run("--train", "-o", tmp_path / "file")
    assert "cannot be created: File exists" in str(done.exception)
    assert "training" not in done.output
