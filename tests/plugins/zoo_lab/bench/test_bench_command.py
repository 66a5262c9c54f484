"""`zoo bench`."""

import json

from benchmark_kit import measurement, result
from typer.testing import CliRunner

import zoo_lab.bench.running
from zoo.cli.main import app
from zoo_lab.bench.bench_table import format_seconds, print_results, summary
from zoo_lab.bench.result import PeerResult, Targets

SMALL = ["--set", "vocab=40", "--limit", "0", "--repeats", "2", "--device", "cpu"]


def _run(*arguments, code=0):
    done = CliRunner().invoke(app, ["bench", *arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_a_run_prints_a_table_and_writes_json(tmp_path):
    file = ["--json", str(tmp_path / "result.json")]
    text = _run("top-k-filter", "top-p-filter", *SMALL, "--no-peers", *file)
    assert "top-k-filter (vocab=40)" in text
    report = json.loads((tmp_path / "result.json").read_text())
    assert [row["benchmark"] for row in report["results"]] == ["top-k-filter", "top-p-filter"]
    assert report["command"].startswith("zoo bench top-k-filter top-p-filter --device cpu")
    assert report["results"][0]["check"] == "passed"
    assert report["results"][0]["params"]["vocab"] == 40


def test_a_sweep_prints_the_growth():
    lines = _run("top-k-filter", *SMALL, "--sweep", "--no-peers").splitlines()
    rows = [line for line in lines if line.startswith("top-k-filter")]
    assert [row.split("batch=")[1].split()[0] for row in rows[-4:]] == ["1", "8", "64", "512"]
    assert rows[-1].count(" x") == 1


def test_ctrl_c_prints_what_was_measured(monkeypatch):
    run = zoo_lab.bench.running.run_benchmark

    def stop_at_the_second(case, *arguments, **options):
        if case.entry.name == "top-p-filter":
            raise KeyboardInterrupt
        return run(case, *arguments, **options)

    monkeypatch.setattr(zoo_lab.bench.running, "run_benchmark", stop_at_the_second)
    text = _run("top-k-filter", "top-p-filter", *SMALL, "--no-peers", code=130)
    assert "top-k-filter (vocab=40)" in text
    assert "interrupted" in text


def test_a_failed_check_is_reported(capsys):
    failed = result(None, check="AssertionError: not close", problem="not measured")
    print_results([failed], sweep=False)
    assert capsys.readouterr().out.split() == [
        "name",
        "problem",
        "tiny",
        "AssertionError:",
        "not",
        "close",
    ]
    assert summary(failed) == "tiny: not measured"


def test_the_table_names_the_best_peer_and_the_targets(capsys):
    peers = {"torch": measurement(8e-3, 10**6), "compiled": measurement(4e-3, 2 * 10**6)}
    found = result(
        measurement(2e-3, 10**6),
        peers=peers,
        targets=Targets(time=3.0, memory=0.5),
        items=(100, "tokens"),
        bound=1e-6,
    )
    found.peers.append(PeerResult(name="other", problem="not installed: no module"))
    print_results([found], sweep=False)
    comparison, *lines = [
        " ".join(line.split()) for line in capsys.readouterr().out.splitlines()[1:]
    ]
    row = "tiny compiled 4 ms 2 ms 2 x 3 x 2.0 MB 1.0 MB 0.5 x 0.5 x 1 µs not met: time"
    assert comparison == row
    assert "tiny (ours) 2 ms 2 ms to 2 ms 1.0 MB 50,000 tokens 1 x" in lines
    assert "tiny other not installed: no module" in lines
    assert summary(found) == "tiny: 2 ms, best peer compiled 4 ms, 2 x"


def test_targets_are_met_only_by_the_peers_that_were_measured(capsys):
    peers = {"torch": measurement(8e-3)}
    found = result(measurement(2e-3), peers=peers, targets=Targets(time=3.0))
    found.problem = "stopped after 5 s"
    print_results([found], sweep=False)
    assert "met by the peers measured" in capsys.readouterr().out


def test_times_have_a_unit():
    assert [format_seconds(s) for s in (2.5, 0.0123, 4.2e-5)] == ["2.5 s", "12.3 ms", "42 µs"]
