"""Recipes are run end to end; finished seeds are not repeated, interrupted ones continue."""

import json

import pytest
import torch
from recipe_kit import write_recipe

from zoo import ZooError
from zoo.training.callback import Callback
from zoo_lab.reproduce.recipe_file import read_recipe
from zoo_lab.reproduce.recipe_run import run_recipe
from zoo_lab.reproduce.seed_run import SeedOptions
from zoo_lab.reproduce.tokenizers import train_tokenizers

OPTIONS = SeedOptions(torch.device("cpu"), "zoo reproduce letters")


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("ZOO_DATA", str(tmp_path / "data"))
    return write_recipe(tmp_path)


def test_a_recipe_is_trained_evaluated_and_written(path, tmp_path):
    output = tmp_path / "out"
    first, last = run_recipe(read_recipe(path), output, OPTIONS)
    assert [seed.seed for seed in first.seeds] == [3]
    assert first.shortened == ["1 of 2 seeds not run"]
    errors, loss = last.figures
    assert set(errors.by_seed) == set(loss.by_seed) == {3, 4}
    assert errors.by_seed[3] == 100 * (1 - last.seeds[0].values["test/exact-match"])
    assert errors.reached is True
    assert loss.reached is False
    assert loss.spread > 0
    seed = last.seeds[0]
    assert (seed.steps, seed.command) == (4, "zoo reproduce letters")
    assert seed.parameters > 1000
    assert seed.hardware["device"]
    assert seed.versions["torch"] == torch.__version__
    assert [point["step"] for point in seed.curve if "validation_loss" in point] == [2, 4]
    assert json.loads((output / "letters.json").read_text()) == last.model_dump(mode="json")


def test_a_finished_seed_is_not_repeated(path, tmp_path):
    recipe, output = read_recipe(path), tmp_path / "out"
    (before,) = run_recipe(recipe, output, OPTIONS, [3])
    (after,) = run_recipe(recipe, output, OPTIONS, [3])
    assert after == before
    changed = read_recipe(path, overrides=["spec.train.steps=5"])
    with pytest.raises(ZooError, match=r"seed-3 has a run with other settings.*-o FOLDER"):
        list(run_recipe(changed, output, OPTIONS, [3]))


def test_a_damaged_result_is_computed_again(path, tmp_path):
    recipe, output = read_recipe(path), tmp_path / "out"
    (before,) = run_recipe(recipe, output, OPTIONS, [3])
    file = output / "letters" / "seed-3" / "result.json"
    content = file.read_text()
    for damaged in (content.replace('"steps": 4', '"steps": 5'), content[:99], ""):
        file.write_text(damaged)
        (after,) = run_recipe(recipe, output, OPTIONS, [3])
        assert [(seed.steps, seed.values) for seed in after.seeds] == [(4, before.seeds[0].values)]
    record = file.with_suffix(".sha256")
    record.unlink()  # as in previous versions
    assert [*run_recipe(recipe, output, OPTIONS, [3])] == [after]


def test_an_altered_tokenizer_is_trained_again(path, tmp_path):
    recipe = read_recipe(path)
    train_tokenizers(recipe, tmp_path)
    files = sorted(tmp_path.glob("words-*.json"))
    before = [file.read_bytes() for file in files]
    assert before
    for damaged in (b"", before[0].replace(b"<unk>", b"<UNK>")):
        files[0].write_bytes(damaged)
        train_tokenizers(recipe, tmp_path)
        assert [file.read_bytes() for file in files] == before
    files[0].with_suffix(".sha256").write_bytes(b"\xff")
    train_tokenizers(recipe, tmp_path)
    assert [file.read_bytes() for file in files] == before


class _Stop(Callback):
    def on_step(self, step):
        if step == 2:
            raise KeyboardInterrupt


def test_an_interrupted_run_continues(path, tmp_path):
    recipe, output = read_recipe(path), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        list(run_recipe(recipe, output, SeedOptions(torch.device("cpu"), callbacks=[_Stop()]), [3]))
    assert not (output / "letters.json").exists()
    (result,) = run_recipe(recipe, output, OPTIONS, [3])
    assert result.seeds[0].steps == 4


def test_the_time_limit_and_fewer_examples_are_stated(path, tmp_path):
    options = SeedOptions(torch.device("cpu"), max_seconds=1e-6, examples=2)
    (result,) = run_recipe(read_recipe(path), tmp_path / "out", options, [3])
    assert result.seeds[0].steps == 1
    assert result.shortened == [
        "training stopped after 1e-06 s, at step 1 of 4",
        "evaluated on the first 2 examples",
        "1 of 2 seeds not run",
    ]


def test_a_seed_that_another_limit_cut_short_is_continued(path, tmp_path):
    recipe, output = read_recipe(path), tmp_path / "out"
    short = SeedOptions(torch.device("cpu"), max_seconds=1e-6, examples=2)
    (before,) = run_recipe(recipe, output, short, [3])
    assert [*run_recipe(recipe, output, short, [3])] == [before]
    (result,) = before.seeds
    assert not result.is_final(1e-6, None)
    assert not result.is_final(2.0, 2)
    (after,) = run_recipe(recipe, output, OPTIONS, [3])
    assert after.seeds[0].steps == 4
    assert after.shortened == ["1 of 2 seeds not run"]
    assert [*run_recipe(recipe, output, short, [3])] == [after]


def test_values_are_means_over_labels(path, tmp_path):
    each = {"one": {}, "two": {"source": "$ZOO_DATA/letters/train.source"}}
    each["two"]["target"] = "$ZOO_DATA/letters/train.target"
    overrides = [f"evaluate.test.each={json.dumps(each)}", "spec.train.steps=1"]
    recipe = read_recipe(path, overrides=overrides)
    (result,) = run_recipe(recipe, tmp_path / "out", OPTIONS, [3])
    values = result.seeds[0].values
    both = [values["test-one/loss"], values["test-two/loss"]]
    assert both[0] != both[1]
    assert values["test/loss"] == pytest.approx(sum(both) / 2)
