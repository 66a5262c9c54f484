"""docs/reproductions.md has the figures of reproductions/results."""

import runpy
from pathlib import Path

from recipe_kit import write_recipe

from zoo.reproduction.recipe_file import read_recipe
from zoo.reproduction.result import Reproduction, SeedResult, collect_figures

ROOT = Path(__file__).parents[1]
PAGE = runpy.run_path(str(ROOT / "reproductions" / "page.py"))


def test_the_page_is_written_from_the_results():
    page = (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")
    assert page == PAGE["render"](PAGE["read_results"](), PAGE["read_recipes"]())


def test_a_recipe_is_shown_with_and_without_results(tmp_path):
    recipe = read_recipe(write_recipe(tmp_path), check=False)
    row = "| [`letters`](#letters) | errors |  | at most 100 % error |"
    assert f"{row} not run yet |  |  |" in PAGE["render"]({}, [recipe])
    seeds = [
        SeedResult(
            seed=seed,
            fingerprint="",
            command="zoo reproduce letters",
            commit="0123456789abcdef",
            date="2026-01-02T03:04:05+00:00",
            hardware={"device": "GPU"},
            versions={"torch": "2.11"},
            seconds=90.0,
            training_seconds=80.0,
            steps=1000,
            parameters=12345,
            values={"test/exact-match": 0.25 * seed, "validation/loss": 1.0},
            curve=[{"step": 500, "loss": 1.0}, {"step": 1000, "validation_loss": 0.5}],
            cut=["training stopped"],
        )
        for seed in (1, 2)
    ]
    result = Reproduction(
        name="letters",
        plugin="",
        description="",
        paper="",
        data={},
        differences=["a small task"],
        seeds_asked=[1, 2],
        figures=collect_figures(recipe.recipe.figures, seeds),
        seeds=seeds,
    )
    lines = PAGE["render"]({"letters": result}, [recipe]).splitlines()
    assert f"{row} 62.5 ± 17.68 % error (reached) | 2 | 3 min |" in lines
    assert "|  | validation/loss |  | at least 50 | 1 ± 0 (not reached) | 2 |  |" in lines
    assert "- cut short: training stopped" in lines
    assert (
        "- seed 1: `zoo reproduce letters`, GPU, torch 2.11, commit 0123456789ab, 12,345 "
        "parameters, 1,000 steps in 80 s"
    ) in lines
    assert "- validation loss by step, seed 1: 0.5 (1,000)" in lines
