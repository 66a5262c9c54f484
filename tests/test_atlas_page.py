"""docs/atlas.md and its plots have the figures of lab/atlas/results."""

import runpy
from pathlib import Path

import pytest
from comparison_kit import make_comparison, make_figure
from lessons import Lesson, read_lessons

from zoo.about import DISTRIBUTION
from zoo.registry.component_registry import default_registry
from zoo_lab.compare.study_file import StudySettings, read_study

ROOT = Path(__file__).parents[1]
PAGE = runpy.run_path(str(ROOT / "lab" / "atlas" / "page.py"))
LESSONS = read_lessons()


@pytest.fixture(scope="module")
def plans():
    return PAGE["read_plans"]()


@pytest.fixture(scope="module")
def results(plans):
    return PAGE["read_results"](plans)


def test_the_page_is_written_from_the_results(plans, results):
    assert (ROOT / "docs" / "atlas.md").read_text(encoding="utf-8") == PAGE["render"](
        plans, results, LESSONS
    )
    for path, picture in PAGE["plots"](results).items():
        assert path.read_text(encoding="utf-8") == picture


def _lesson(better, worse):
    comparison = {"study": "small", "better": better, "worse": worse}
    return Lesson(title=f"{better} is better", text="A text.", comparisons=[comparison])


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.title)
def test_the_results_support_each_comparison_of_a_lesson(lesson, results):
    assert [each for each in lesson.comparisons if not each.is_supported(results)] == []


def test_the_page_has_the_supported_lessons_only(plans):
    plan, values = plans[0], {"dot": [20.0, 22.0], "gat": [10.0, 12.0]}
    results = {plan.name: make_comparison(values), "small": make_comparison(values)}
    lessons = [_lesson("dot", "baseline"), _lesson("gat", "baseline"), _lesson("baseline", "dot")]
    page = PAGE["render"]([plan], results, lessons)
    assert "**dot is better** A text.\n\n| task |" in page
    row = "| small, test BLEU | dot: 21 ± 1.41 | additive: 10 ± 1.41 | 11 | 2.83 |"
    assert page.count("| small, ") == page.count(row) == 1
    assert "What was learned" not in PAGE["render"]([plan], results, lessons[1:])


def test_a_difference_within_the_spread_of_the_validation_data_is_not_a_lesson():
    result = make_comparison({"dot": [20.0, 22.0]})
    comparison = _lesson("dot", "baseline").comparisons[0]
    assert comparison.is_supported({"small": result})
    result.variants["dot"].validation = make_figure([9.0, 13.0])
    assert not comparison.is_supported({"small": result})


def test_runs_that_a_limit_stopped_are_no_lesson():
    result = make_comparison({"dot": [20.0, 22.0]})
    result.variants["dot"].seeds[0].shortened = ["training stopped after 5 s, at step 3 of 100"]
    assert not _lesson("dot", "baseline").is_supported({"small": result})


def test_results_are_shown_with_their_origin(plans):
    plan = plans[0]
    result = make_comparison({"dot": [20.0, 22.0], "gat": []})
    page = PAGE["render"]([plan], {plan.name: result}).splitlines()
    assert "| additive | 10 ± 1.41 | 10 ± 1.41 | 1,234,567 | 300 MB | 2 of 2 |" in page
    assert not [line for line in page if "/s |" in line]  # runs that share a GPU have no speed
    assert "| gat | not run yet | – | – | – | 0 of 2 |" in page
    assert (
        "- Best on the validation data, of those with 2 seeds: `dot`, with test BLEU 21 ± 1.41."
        in page
    )
    runs = "- 4 runs of 50 s in the mean: `zoo compare small.yaml`, GPU, torch 2.11, commit"
    assert f"{runs} 0123456789ab, 14 runs side by side" in page


def _store(plan, folder, *, settings=(), examples=None):
    """Store results of the base, of an earlier version; return what is read from them."""
    stored = make_comparison({}).model_copy(update={"name": plan.name, "examples": examples})
    for seed in stored.baseline.seeds:
        seed.overrides = [*plan.base.overrides, *settings]
    (folder / f"{plan.name}.json").write_text(stored.model_dump_json())
    return PAGE["read_results"]([plan], folder)[plan.name]


def test_earlier_results_are_shown_if_only_the_base_has_changed(plans, tmp_path):
    plan = plans[0]
    result = _store(plan, tmp_path)
    assert [seed.seed for seed in result.baseline.seeds] == [0, 1]
    lines = PAGE["render"]([plan], {plan.name: result}).splitlines()
    assert "- 2 runs are of an earlier version of the base; their commit has it" in lines


@pytest.mark.parametrize("options", [{"settings": ["train.steps=5"]}, {"examples": 8}])
def test_results_with_other_settings_are_not_shown(plans, tmp_path, options):
    assert _store(plans[0], tmp_path, **options).baseline.seeds == []


def test_every_scorer_and_alignment_is_compared_or_left_out(plans):
    for plan in plans[:3]:
        for kind in ("scorer", "alignment"):
            labels = [*plan.groups[kind], *plan.study.groups[kind].left_out]
            named = {part for label in labels for part in label.split(", ")}
            shipped = {
                entry.name
                for entry in default_registry().components(kind)
                if entry.distribution == DISTRIBUTION
            }
            assert shipped - named == set()


@pytest.mark.slow
def test_every_variant_can_be_composed(plans):
    from zoo.spec.composition import validate_spec

    for plan in plans:
        for variant in plan.variants.values():
            assert validate_spec(variant.recipe.spec).name == plan.base.name


def test_the_studies_are_the_files_of_the_folder(plans):
    files = sorted(path.stem for path in (ROOT / "lab" / "atlas").glob("*.yaml"))
    assert sorted(plan.name for plan in plans) == files
    assert read_study(str(ROOT / "lab" / "atlas" / "graphs.yaml"), StudySettings()).seeds == (
        0,
        1,
        2,
    )
