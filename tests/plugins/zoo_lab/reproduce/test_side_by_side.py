"""Runs in several processes."""

import pytest
from recipe_kit import write_recipe

from zoo_lab.reproduce.recipe_file import read_recipe
from zoo_lab.reproduce.recipe_run import write_results
from zoo_lab.reproduce.side_by_side import list_tasks, run_tasks


@pytest.mark.slow
def test_seeds_run_side_by_side_and_a_failed_one_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("ZOO_DATA", str(tmp_path / "data"))
    recipe = read_recipe(write_recipe(tmp_path))
    output, lines = tmp_path / "out", []
    tasks = list_tasks(recipe, output, [3], device="cpu")
    tasks += list_tasks(recipe, output, [4], device="none")
    assert len(list((output / "letters").glob("words-*.json"))) == 1
    failed = run_tasks(tasks, 2, lines.append)
    assert [task.seed for task in failed] == [4]
    assert sorted(line.split(" after")[0] for line in lines) == [
        "letters seed 3: done",
        f"letters seed 4: failed, see {output}/letters/seed-4/output.txt",
    ]
    assert "device 'none' is unknown" in (output / "letters/seed-4/output.txt").read_text()
    result = write_results(recipe, output)
    assert [seed.seed for seed in result.seeds] == [3]
    assert " --seed 3" in result.seeds[0].command
