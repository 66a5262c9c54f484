"""Writes docs/atlas.md and its plots from the results of `zoo compare lab/atlas/*.yaml`.

    python lab/atlas/page.py

Every figure is from the JSON files in lab/atlas/results, which are those that `zoo compare` writes
to its output folder. Variants without a result are listed as not run yet.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lessons import Lesson, read_lessons, render_lessons

from zoo_lab.compare.comparison_plot import plot_comparison
from zoo_lab.compare.comparison_result import StudyResult, collect_results, read_comparison
from zoo_lab.compare.study_file import StudyPlan, StudySettings, read_study
from zoo_lab.compare.summary import summarise
from zoo_lab.compare.table import table_columns, table_rows
from zoo_lab.reproduce.markdown import markdown_table

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "lab" / "atlas"
RESULTS = STUDIES / "results"
PAGE = ROOT / "docs" / "atlas.md"
SPEED = 4
"""The column of the speed."""
ORDER = ("translation", "g2p", "captions", "graphs")

INTRODUCTION = """# Atlas of attention

Which score, which alignment? This page compares them on four tasks. It is written by
`python lab/atlas/page.py` from the files in `lab/atlas/results`, which `zoo compare` writes; the
variants are described in `lab/atlas/*.yaml`.

    zoo compare lab/atlas/*.yaml --data data --jobs 14 -o runs/atlas    # all, on a GPU
    zoo compare lab/atlas/graphs.yaml --data data                       # one task
    zoo compare g2p-bahdanau --swap decoder.attention.scorer=additive,dot --steps 500 --data data

How to read the tables:

- Each row is the first one of its table, the baseline, with one change. All rows of a task have the
  same data, the same number of steps and the same learning rate, which was not tuned for any of
  them. The runs are short: the values show how well a variant trains in about a minute, not what it
  can reach.
- Quality is mean ± standard deviation over the seeds, on the test data, which is evaluated once,
  with the checkpoint that the validation data selected. With few seeds the spread is a rough
  estimate: a difference that is smaller than the spreads of both rows together may be chance.
- Memory is the maximum that torch allocates during training. Speed is not compared, because the
  runs shared a GPU.
- The same command continues: a finished run is not repeated.
"""


def read_plans() -> list[StudyPlan]:
    """Return the studies in the order of the page."""
    return [read_study(str(STUDIES / f"{name}.yaml"), StudySettings()) for name in ORDER]


def read_results(plans: Sequence[StudyPlan], folder: Path = RESULTS) -> dict[str, StudyResult]:
    """Return the committed results of the studies, in which variants may have no runs yet.

    Results of an earlier version of the base are shown too, if they have the settings of the study:
    results of runs with ``--set``, ``--steps`` or ``--examples`` are not.
    """
    found = {}
    for plan in plans:
        stored = read_comparison(folder, plan.name)
        result = collect_results(plan, folder, stored.data if stored else {})
        for name, variant in result.variants.items():
            earlier = stored.variants.get(name) if stored and stored.examples is None else None
            settings = list(plan.variants[name].recipe.overrides)
            runs = [] if variant.seeds or earlier is None else earlier.seeds
            if earlier and runs and all(run.overrides == settings for run in runs):
                result.variants[name] = earlier
        found[plan.name] = result
    return found


def render(
    plans: Sequence[StudyPlan],
    results: Mapping[str, StudyResult],
    lessons: Sequence[Lesson] = (),
) -> str:
    """Return the page, with the lessons that the results support."""
    lines = [INTRODUCTION, *render_lessons(lessons, results)]
    for plan in plans:
        lines += _section(plan, results[plan.name])
    return "\n".join(lines).rstrip() + "\n"


def _section(plan: StudyPlan, result: StudyResult) -> Iterator[str]:
    yield f"## {result.title}"
    yield ""
    yield f"{result.description} Base: `{plan.study.base}`, study: `atlas/{result.name}.yaml`."
    yield ""
    if any(variant.seeds for variant in result.variants.values()):
        yield f"![{result.title}](atlas-{result.name}.svg)"
        yield ""
    for group in result.groups:
        yield f"### {result.name}: {group.title}"
        yield ""
        rows = [_without_speed(row) for row in table_rows(result, group)]
        yield from markdown_table(_without_speed(table_columns(result)), rows)
        yield ""
        notes = list(summarise(result, group))
        notes += [f"Left out: {name}: {reason}." for name, reason in group.excluded.items()]
        yield from [*(f"- {note}" for note in notes), ""] if notes else ()
    yield from _runs(plan, result)


def _without_speed(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the cells of a row without the speed: runs that share a GPU do not show it."""
    return (*cells[:SPEED], *cells[SPEED + 1 :])


def _runs(plan: StudyPlan, result: StudyResult) -> Iterator[str]:
    """Yield where and how the runs were made."""
    seeds = [seed for variant in result.variants.values() for seed in variant.seeds]
    if not seeds:
        return
    yield "Runs:"
    yield ""
    described: dict[str, list[float]] = {}
    for seed in seeds:
        commit = f", commit {seed.commit[:12]}" if seed.commit else ""
        shared = f", {seed.side_by_side} runs side by side" if seed.side_by_side > 1 else ""
        text = f"`{seed.command}`, {seed.hardware['device']}, torch {seed.versions['torch']}"
        described.setdefault(text + commit + shared, []).append(seed.seconds)
    for text, seconds in described.items():
        mean = sum(seconds) / len(seconds)
        yield f"- {len(seconds)} runs of {mean:.0f} s in the mean: {text}"
    current = {variant.recipe.fingerprint for variant in plan.variants.values()}
    earlier = sum(seed.fingerprint not in current for seed in seeds)
    if earlier:
        yield f"- {earlier} runs are of an earlier version of the base; their commit has it"
    yield ""


def plots(results: Mapping[str, StudyResult]) -> dict[Path, str]:
    """Return the plots of the studies with results, by file."""
    return {
        PAGE.parent / f"atlas-{name}.svg": plot_comparison(result)
        for name, result in results.items()
        if any(variant.seeds for variant in result.variants.values())
    }


def write_page() -> None:
    """Write the page and its plots from the committed results."""
    plans = read_plans()
    results = read_results(plans)
    PAGE.write_text(render(plans, results, read_lessons()), encoding="utf-8")
    for path, text in plots(results).items():
        path.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    write_page()
