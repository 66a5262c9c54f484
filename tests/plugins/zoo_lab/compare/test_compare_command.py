"""``zoo compare``."""

import csv
import json
from pathlib import Path

import yaml
from lock_kit import lock_in_process
from training_kit import make_spec, write_files
from typer.testing import CliRunner

from zoo.cli.main import app

SWAP = ["--swap", "decoder.attention.scorer=scaled-dot,{type: general},dto"]


def _run(*arguments):
    return CliRunner().invoke(app, ["compare", *arguments])


def test_variants_are_compared_and_a_wrong_one_is_reported(recipe_folder):
    options = ["--data", "data", "--steps", "1", "--seeds", "1", "--examples", "2"]
    done = _run("letters.yaml", *SWAP, *options, "--device", "cpu", "-o", "out")
    assert done.exit_code == 1
    assert "3 runs, 0 of them finished before" in done.stderr
    assert "[1/3] letters baseline seed 0: done" in done.stderr
    assert "failed: --swap model.decoder.attention.scorer" in done.stderr
    assert "did you mean 'dot'?" in done.stderr
    assert "scaled-dot (baseline)" in done.stdout
    again = _run("letters.yaml", *SWAP, *options, "--device", "cpu", "-o", "out", "--json")
    assert "3 runs, 2 of them finished before" in again.stderr
    (result,) = json.loads(again.stdout)
    assert result["variants"]["scorer-general"]["seeds"][0]["command"] == (
        "zoo compare letters.yaml --swap 'decoder.attention.scorer=scaled-dot,{type: general},dto' "
        "--seeds 1 --steps 1 --jobs 1 --examples 2"
    )


def test_a_folder_in_which_another_process_compares_is_rejected(recipe_folder):
    options = ["--data", "data", "--steps", "1", "--seeds", "1", "--device", "cpu", "-o", "out"]
    with lock_in_process(recipe_folder / "out" / "letters") as process:
        done = _run("letters.yaml", *SWAP, *options)
    assert str(done.exception).startswith(f"out/letters is in use by process {process.pid} on ")
    assert [path.name for path in (recipe_folder / "out").iterdir()] == ["letters"]


def test_steps_replace_the_epochs_of_a_spec_and_the_table_has_its_metrics(recipe_folder):
    write_files(recipe_folder)
    spec = {**make_spec(Path()), "metrics": ["accuracy", "perplexity"], "name": "letters-spec"}
    del spec["train"]["steps"]
    spec["train"]["epochs"] = 50
    Path("tiny.yaml").write_text(yaml.safe_dump(spec))
    arguments = ["tiny.yaml", "--swap", "decoder.attention.scorer=general", "--seeds", "1"]
    done = _run(*arguments, "--steps", "1", "--device", "cpu", "-o", "out")
    assert done.exit_code == 0, done.output
    header = next(line for line in done.stdout.splitlines() if line.startswith("variant"))
    assert header.count("validation loss") == 1
    assert "validation accuracy" in header
    assert "validation perplexity" in header
    (result,) = json.loads(_run(*arguments, "--steps", "1", "-o", "out", "--json").stdout)
    assert result["variants"]["baseline"]["seeds"][0]["steps"] == 1
    rows = list(csv.DictReader(Path("out/letters-spec.csv").read_text().splitlines()))
    assert all(float(row["validation accuracy"]) >= 0 for row in rows)


def test_the_list_checks_the_variants(recipe_folder):
    done = _run("letters.yaml", *SWAP, "--list", "--json")
    assert done.exit_code == 1
    first, second, third = json.loads(done.stdout)
    assert first["variant"] == "scaled-dot (baseline)"
    assert int(second["parameters"].replace(",", "")) > int(first["parameters"].replace(",", ""))
    assert "no scorer named 'dto'" in third["parameters"]


def test_wrong_arguments_are_errors(recipe_folder):
    done = _run("letters.yaml")
    assert done.exit_code == 2
    assert "expected --swap PATH=VALUE,VALUE" in " ".join(done.stderr.split())
    done = _run("multi30k-luon", "--swap", "decoder.attention.scorer=dot")
    assert str(done.exception) == (
        "no recipe, spec or file named 'multi30k-luon'; did you mean 'multi30k-luong'? "
        "(see 'zoo reproduce --list')"
    )
    done = _run("letters.yaml", "--swap", "decoder.atention.scorer=dot")
    assert done.exit_code == 1
    assert "'model.decoder' has no key 'atention'; did you mean 'attention'?" in str(done.exception)
