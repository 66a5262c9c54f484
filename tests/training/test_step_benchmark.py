"""The benchmark of training steps runs to its end."""

import json
import runpy
import sys
from pathlib import Path

import zoo

BENCHMARKS = Path(__file__).parents[2] / "lab" / "benchmarks"
OPTIONS = (
    "--cases tiny --compile no --precision float32 --device cpu "
    "--batch 2 4 --rounds 1 --steps 12 --warmup 1"
)


def test_the_benchmark_of_training_steps_compares_both_steps_and_both_inputs(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.delenv("ZOO_DATA", raising=False)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    file = tmp_path / "times.json"
    monkeypatch.setattr(sys, "argv", ["training.py", "-o", str(file), *OPTIONS.split()])

    runpy.run_path(str(BENCHMARKS / "training.py"), run_name="__main__")

    found = json.loads(file.read_text())["tiny"]
    assert found["step"]["engine / by hand"] > 0
    assert found["input"]["pipeline / cached"] > 0
    assert "engine / by hand" in capsys.readouterr().out


def test_the_benchmark_of_limited_memory_trains_texts_of_the_planned_length(tmp_path):
    write_spec = runpy.run_path(str(BENCHMARKS / "limited_training.py"))["write_spec"]
    spec = write_spec(tmp_path, "tiny", 16)
    trained = zoo.train(spec, output=tmp_path / "run", device="cpu")
    assert trained.step == spec["train"]["steps"]
    (line,) = {len(line) for line in (tmp_path / "texts.txt").read_text().splitlines()}
    assert line + 2 == 16 + 1  # bos and eos, without the last token, which is not read
