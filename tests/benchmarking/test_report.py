"""The JSON file of a run."""

import subprocess
from pathlib import Path

from benchmark_kit import CPU, measurement, result

import zoo
from zoo.benchmarking.environment import find_commit
from zoo.benchmarking.report import ReportWriter
from zoo.benchmarking.result import Report


def test_a_report_has_what_is_needed_to_repeat_the_run(tmp_path):
    file = tmp_path / "result.json"
    writer = ReportWriter(file, ["zoo", "bench", "--set", "a=b c"], CPU)
    writer.write([])
    first = result(measurement(2.0), versions={"peer": "1.2"})
    writer.write([first])
    report = Report.model_validate_json(file.read_text())
    assert report.results == [first]
    assert report.command == "zoo bench --set 'a=b c'"
    assert report.date.endswith("+00:00")
    assert {"python", "torch", "zoo", "peer"} <= set(report.versions)
    assert {"device", "processor", "cores", "threads"} <= set(report.hardware)


def test_the_commit_is_that_of_the_checkout():
    folder = Path(zoo.__file__).parents[1]
    git = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True)
    found = find_commit()
    if done.returncode or not (folder / ".git").exists():
        assert found is None
    else:
        assert found.removesuffix("+") == done.stdout.strip()
