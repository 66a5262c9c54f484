"""docs/atlas.md and its plots have the figures of lab/atlas/results."""

import runpy
from pathlib import Path

import pytest
from comparison_kit import make_comparison

from zoo.about import DISTRIBUTION
from zoo.registry.component_registry import default_registry
from zoo_lab.compare.study_file import StudySettings, read_study

ROOT = Path(__file__).parents[1]
PAGE = runpy.run_path(str(ROOT / "lab" / "atlas" / "page.py"))


@pytest.fixture(scope="module")
def plans():
    return PAGE["read_plans"]()


def test_the_page_is_written_from_the_results(plans):
    results = PAGE["read_results"](plans)
    assert (ROOT / "docs" / "atlas.md").read_text(encoding="utf-8") == PAGE["render"](
        plans, results, PAGE["read_lessons"]()
    )
    for path, picture in PAGE["plots"](results).items():
        assert path.read_text(encoding="utf-8") == picture


def test_figures_of_the_lessons_are_from_the_results(plans):
    plan = plans[0]
    results = {plan.name: make_comparison({"dot": [20.0, 22.0], "gat": []})}
    page = PAGE["render"]([plan], results, f"BLEU is {{{plan.name}/dot}}.")
    assert "BLEU is 21 ± 1.41." in page
    with pytest.raises(ValueError, match="gat} has no result"):
        PAGE["render"]([plan], results, f"{{{plan.name}/gat}}")


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
