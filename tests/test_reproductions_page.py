"""docs/reproductions.md and its plots have the figures of lab/reproductions/results."""

import json
import re
import runpy
from pathlib import Path

import pytest
from committed_results import RESULTS, VARIANTS, read_results
from intervals import ITEMS, NO_INTERVAL, PROPORTIONS, count_items
from recipe_kit import make_reproduction, write_recipe
from recipe_section import CAPTIONS
from result_table import PUBLISHED_RAM, table_rows
from tried_settings import quoted_figure

from zoo_lab.reproduce.figures import reaches_published, wilson_interval
from zoo_lab.reproduce.recipe_file import read_recipe

ROOT = Path(__file__).parents[1]
PAGE = runpy.run_path(str(ROOT / "lab" / "reproductions" / "page.py"))
RUN = {
    "training_seconds": 80.0,
    "steps": 1000,
    "parameters": 12345,
    "curve": [{"step": 500, "loss": 1.0}, {"step": 1000, "validation_loss": 0.5}],
}


@pytest.fixture(scope="module")
def results():
    return read_results()


@pytest.fixture(scope="module")
def recipes():
    return PAGE["read_recipes"]()


@pytest.fixture
def recipe(tmp_path):
    return read_recipe(write_recipe(tmp_path), check=False)


def test_the_page_is_written_from_the_results(results, recipes):
    page = (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")
    assert page == PAGE["render"](results, recipes, PAGE["read_tried"](results))


def test_the_plots_are_those_of_the_results(results):
    plots = PAGE["plots"](results)
    assert set(plots) == set(PAGE["CURVES"].glob("*"))
    for path, picture in plots.items():
        assert path.read_text(encoding="utf-8") == picture


def test_each_missed_target_has_a_plot_and_a_list_of_what_was_tried(results):
    missed = PAGE["missed"](results)
    assert missed <= set(PAGE["read_tried"](results)) <= set(results)
    trained = {name for name in missed if any(seed.curve for seed in results[name].seeds)}
    assert {path.stem for path in PAGE["plots"](results)} == trained


def test_each_variant_is_named_in_what_was_tried():
    named = re.findall(r"\{([a-z0-9-]+)", PAGE["TRIED"].read_text(encoding="utf-8"))
    assert set(read_results(VARIANTS)) - set(named) == set()


def test_each_caption_has_a_picture():
    assert set(CAPTIONS) <= {path.stem for path in PAGE["PICTURES"].iterdir()}


def test_a_recipe_is_shown_with_and_without_results(recipe):
    row = "| [`letters`](#letters) | errors |  | at most 100 % error |"
    assert f"{row} not run yet |  |  |  |  |" in PAGE["render"]({}, [recipe], {})
    values = [{"test/exact-match": 0.25 * seed, "validation/loss": 1.0} for seed in (1, 2)]
    result = make_reproduction(recipe.recipe.figures, values, cut=["training stopped"], **RUN)
    tried = {"letters": "- a smaller model"}
    lines = PAGE["render"]({"letters": result}, [recipe], tried).splitlines()
    assert "Reversal of letters. none. Data: `letters`." in lines
    assert f"{row} 62.5 ± 17.68 % error |  | yes | 2 | 3 min |" in lines
    assert "|  | validation/loss |  | at least 50 | 1 ± 0 |  | no | 2 |  |" in lines
    assert "- validation/loss: at least 50; result: 1 ± 0" in lines
    assert "![Validation results of letters by step](curves/letters.svg)" in lines
    assert lines[lines.index("What was tried:") + 2] == "- a smaller model"
    assert "- cut short: training stopped" in lines
    changed = "- the recipe has changed since these runs; their commits have its settings"
    assert changed in lines
    now = make_reproduction(recipe.recipe.figures, values, fingerprint=recipe.fingerprint, **RUN)
    assert changed not in PAGE["render"]({"letters": now}, [recipe], tried)
    assert (
        "- seed 1: `zoo reproduce letters`, GPU, torch 2.11, commit 0123456789ab, 12,345 "
        "parameters, 1,000 steps in 80 s"
    ) in lines
    assert "- validation loss by step, seed 1: 0.5 (1,000)" in lines


def test_runs_that_shared_the_device_are_counted(recipe):
    values = [{"test/exact-match": 1.0}]
    result = make_reproduction(recipe.recipe.figures, values, side_by_side=14, **RUN)
    page = PAGE["render"]({"letters": result}, [recipe], {})
    assert "1,000 steps in 80 s, beside 13 other runs on the same device\n" in page


def test_a_recipe_that_reaches_its_targets_has_no_plot(recipe):
    values = [{"test/exact-match": 1.0, "validation/loss": 60.0}]
    result = make_reproduction(recipe.recipe.figures, values, **RUN)
    page = PAGE["render"]({"letters": result}, [recipe], {"letters": "- a smaller model"})
    assert "Targets that are not reached" not in page
    assert "curves/" not in page
    assert "What was tried:\n\n- a smaller model" in page
    assert PAGE["plots"]({"letters": result}) == {}


def test_figures_in_what_was_tried(recipe):
    values = [{"test/exact-match": 0.5, "validation/exact-match": 0.25 * seed} for seed in (1, 2)]
    result = make_reproduction(recipe.recipe.figures, values, **RUN)
    assert quoted_figure(result, None, 0) == "62.5 ± 17.68 % error"
    assert quoted_figure(result, "test", 0) == "50 ± 0 % error"
    assert quoted_figure(result, "seed", 2) == "50 % error"
    values = [{"test/exact-match": 0.5, "validation/loss": 0.25}]
    result = make_reproduction(recipe.recipe.figures, values, **RUN)
    assert quoted_figure(result, None, 0) == "0.25"
    assert quoted_figure(result, "at", 1000) == "0.5"
    assert quoted_figure(result, "above", 0) == "validation/loss"
    assert quoted_figure(result, "above", 1) == ""


def test_captions_of_photographs_are_compared_with_those_without_attention(results):
    plain = {figure.value: figure.mean for figure in results["captions-flickr8k-plain"].figures}
    for name in ("captions-flickr8k-soft", "captions-flickr8k-hard"):
        for figure in results[name].figures:
            assert figure.at_least is None or figure.at_least == pytest.approx(
                plain[figure.value], rel=0.005
            )


def test_the_papers_figure_and_the_own_target_are_compared_separately(recipe):
    values = [{"validation/loss": 1.0}]
    figure = make_reproduction(recipe.recipe.figures, values, **RUN).figures[-1]
    assert figure.reached is False  # at least 50
    assert reaches_published(figure, "0.9 (a paper)") is True
    assert reaches_published(figure, "at least 1.1") is False
    assert reaches_published(figure, "one rollout: 0.9") is None
    without = figure.model_copy(update={"at_least": None})
    assert reaches_published(without, "0.9") is None


@pytest.mark.parametrize(
    ("proportion", "items", "expected"),
    [(0.0, 10, (0.0, 0.2775)), (0.5, 100, (0.4038, 0.5962)), (0.0144, 10_000, (0.01225, 0.01692))],
)
def test_intervals_are_those_of_wilson(proportion, items, expected):
    assert wilson_interval(proportion, items) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("proportion", [0.0, 1.0])
def test_the_interval_of_no_or_all_items_ends_there(proportion):
    assert proportion in wilson_interval(proportion, 1_000)


def test_each_figure_has_an_interval_or_a_reason(recipes):
    for recipe in recipes:
        for figure in recipe.recipe.figures:
            metric = figure.value.partition("/")[2]
            reasons = [name for name in NO_INTERVAL if metric.startswith(name)]
            assert (metric in PROPORTIONS) + len(reasons) == 1
            assert (count_items(recipe, figure.value) is None) == bool(reasons)


def test_results_are_proportions_of_the_number_of_test_items(results, recipes):
    checked = set()
    for recipe in recipes:
        for figure in results[recipe.name].figures:
            items = count_items(recipe, figure.value)
            for seed in results[recipe.name].seeds if items else ():
                right = seed.values[figure.value] * items
                assert right == pytest.approx(round(right), abs=1e-3)
                checked.add(recipe.name)
    assert checked == set(ITEMS)


@pytest.mark.parametrize("name", ["captions-digits-soft", "g2p-bahdanau", "ram-mnist"])
def test_the_number_of_test_items_is_that_of_the_shipped_model(name):
    shipped = json.loads((RESULTS.parent / "shipped" / f"{name}.json").read_text(encoding="utf-8"))
    assert ITEMS[name] == shipped["hypotheses"]["test"]["count"]


@pytest.mark.parametrize(("error", "expected"), [(1.07, "yes"), (1.08, "no")])
def test_one_rollout_is_compared_with_the_paper(monkeypatch, tmp_path, results, error, expected):
    measured = {"ram-mnist": {"command": "python x.py", "items": 10_000, "error": error}}
    file = tmp_path / "one_rollout.json"
    file.write_text(json.dumps(measured))
    monkeypatch.setattr("result_table.ONE_ROLLOUT", file)
    first = next(table_rows(read_recipe("ram-mnist", check=False), results["ram-mnist"]))
    assert f"] | {expected} |  | 1 |" in first
    assert PUBLISHED_RAM[6] == 1.07


@pytest.mark.parametrize(
    ("recipe", "published"),
    [
        ("memn2n-babi-10k", "| 7.5 % (about, joint training; quoted, not checked); 6.6 % for one "),
        ("lm-wikitext2-lstm", "| 65.8 (Merity et al. 2017, AWD-LSTM; quoted, not checked); "),
    ],
)
def test_published_figures_stand_in_the_row_of_the_recipe(recipe, published, results):
    first = next(table_rows(read_recipe(recipe, check=False), results[recipe]))
    assert published in first


def test_the_first_figure_of_ram_is_one_rollout(results, recipes):
    page = PAGE["render"](results, recipes, PAGE["read_tried"](results))
    first = next(line for line in page.splitlines() if "(#ram-mnist)" in line)
    assert "one rollout of 6 glimpses" in first
    assert "| 1.44 % error [1.22, 1.69] | no |" in first
