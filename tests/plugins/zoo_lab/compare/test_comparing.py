"""Studies are run, continued and written; a variant that fails stops nothing."""

import csv
import json

import pytest

from zoo import ZooError
from zoo.training.callback import Callback
from zoo_lab.compare.comparing import (
    RunOptions,
    list_tasks,
    prepare,
    run_all,
    write_comparison,
)
from zoo_lab.compare.comparison_result import StudyResult
from zoo_lab.compare.study_file import StudySettings, read_study
from zoo_lab.reproduce.recipe_run import write_text


@pytest.fixture
def plan(study):
    return read_study(str(study), StudySettings(seeds=(3,), examples=2))


@pytest.fixture
def options(tmp_path):
    return RunOptions(tmp_path / "out", "cpu", "zoo compare study.yaml")


def test_the_first_seed_of_all_variants_comes_first(study, options):
    plan = read_study(str(study), StudySettings())
    tasks = [(task.variant, task.seed) for task in list_tasks([plan], options)]
    assert tasks == [(name, seed) for seed in (0, 1) for name in plan.variants]


def test_a_study_is_run_written_and_continued(plan, options):
    data = prepare([plan], options)[plan.name]
    tasks = list_tasks([plan], options)
    outcomes = list(run_all(tasks, options))
    problems = {o.task.variant: o.problem for o in outcomes if o.problem is not None}
    assert set(problems) == {"align-monotonic"}
    assert "alignment 'monotonic' depends on previous queries" in problems["align-monotonic"]
    comparison = write_comparison(plan, options.output, data)

    general = comparison.variants["scorer-general"]
    assert [seed.seed for seed in general.seeds] == [3]
    assert general.seeds[0].command == "zoo compare study.yaml"
    assert general.seeds[0].steps == 2
    assert set(general.quality.by_seed) == {3}
    assert general.tokens_per_second > 0
    assert general.parameters > comparison.baseline.parameters
    assert comparison.lower_is_better
    assert comparison.validation_lower_is_better
    assert "depends on previous queries" in comparison.variants["align-monotonic"].errors[3]
    stored = json.loads((options.output / "letters-study.json").read_text())
    assert StudyResult.model_validate(stored) == comparison

    markdown = (options.output / "letters-study.md").read_text().splitlines()
    (row,) = [line for line in markdown if line.startswith("| monotonic |")]
    assert row.startswith("| monotonic | failed: ")
    text = (options.output / "letters-study.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["variant"] for row in rows if row["group"] == "scorer"] == [
        "scaled-dot (baseline)",
        "general",
    ]
    picture = (options.output / "letters-study.svg").read_text()
    assert "<svg" in picture
    assert ">failed</text>" in picture

    folder = tasks[0].run_folder
    assert not (folder / "model.safetensors").exists()
    left = {task.variant for task in list_tasks([plan], options)}
    assert left == {"align-monotonic"}
    (options.output / "letters-study.json").write_text('{"name": "letters-study"}')
    with pytest.raises(ZooError, match=r"letters-study.json is not a result of 'zoo compare'"):
        list_tasks([plan], options)
    write_text(options.output / "letters-study.json", comparison.model_dump_json())
    (folder / "result.json").unlink()  # the results of all runs are enough
    assert {task.variant for task in list_tasks([plan], options)} == left


class _Stop(Callback):
    def on_step(self, step):
        raise KeyboardInterrupt


def test_an_interruption_leaves_finished_runs(plan, options):
    data = prepare([plan], options)[plan.name]
    tasks = list_tasks([plan], options)
    list(run_all(tasks[:1], options))
    with pytest.raises(KeyboardInterrupt):
        list(run_all(tasks[1:], options, _Stop()))
    comparison = write_comparison(plan, options.output, data)
    assert [name for name, v in comparison.variants.items() if v.seeds] == ["baseline"]
    assert comparison.variants["scorer-general"].errors == {}
    assert len(list_tasks([plan], options)) == len(tasks) - 1
