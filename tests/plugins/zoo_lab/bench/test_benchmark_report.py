"""The JSON file of a run."""

import subprocess

from benchmark_kit import CPU, measurement, result

from zoo_lab.bench.benchmark_report import ReportWriter
from zoo_lab.bench.result import BenchmarkReport
from zoo_lab.environment import find_commit


def test_a_report_has_what_is_needed_to_repeat_the_run(tmp_path):
    file = tmp_path / "result.json"
    writer = ReportWriter(file, ["zoo", "bench", "--set", "a=b c"], CPU)
    writer.write([])
    first = result(measurement(2.0), versions={"peer": "1.2"})
    writer.write([first])
    report = BenchmarkReport.model_validate_json(file.read_text())
    assert report.results == [first]
    assert report.command == "zoo bench --set 'a=b c'"
    assert report.date.endswith("+00:00")
    assert {"python", "torch", "zoo", "peer"} <= set(report.versions)
    assert {"device", "processor", "cores", "threads"} <= set(report.hardware)


def test_the_commit_is_that_of_the_checkout(tmp_path, monkeypatch):
    package = tmp_path / "zoo"
    package.mkdir()
    (package / "__init__.py").write_text("")

    def git(*arguments):
        user = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", "-C", str(tmp_path), *user, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init")
    assert find_commit(package) is None
    git("add", "zoo")
    git("commit", "-m", "all")
    commit = git("rev-parse", "HEAD")
    assert find_commit(package) == commit
    (package / "__init__.py").write_text("changed")
    assert find_commit(package) == f"{commit}+"
    installed = tmp_path / "not tracked"
    installed.mkdir()
    assert find_commit(installed) is None
    monkeypatch.setenv("ZOO_COMMIT", "abc")
    assert find_commit(installed) == "abc"
