"""``zoo plan``."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.cli.output import format_bytes
from zoo.errors import ZooError
from zoo_lab.plan.memory_plan import make_plan
from zoo_lab.plan.plan_options import parse_batch, parse_devices


def _run(*arguments):
    done = CliRunner().invoke(app, ["plan", "gpt2-tiny", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_plan_is_printed():
    text = _run("--devices", "fsdp:2", "--batch", "2x8")
    assert "gpt2-tiny, fsdp:2: each of 2 devices, batch 2x8 (option)" in text
    assert "optimiser adamw (default), precision float32 (default)" in text
    parts = [line.split("  ")[0] for line in text.splitlines()]
    for part in ("weights", "gradients", "optimiser", "activations", "gathered weights", "total"):
        assert part in parts
    assert "reduce-scatter: " in text
    table = text.partition("memory ")[2].partition("\n\n")[0]
    assert all(len(line.split("  ")) > 2 for line in table.splitlines()[1:])


def test_check_names_the_plan_as_the_next_command():
    done = CliRunner().invoke(app, ["check", "gpt2-tiny"])
    assert "\nzoo plan gpt2-tiny: Print the memory of each device" in done.output


def test_the_plan_is_printed_as_json():
    report = json.loads(_run("--devices", "ddp:4", "--batch", "2x8", "--json"))
    assert report["ok"] is True
    plan = report["plan"]
    assert plan["devices"] == 4
    assert plan["total"] == sum(plan["at_peak"].values())
    assert plan["communication"] == {"all-reduce": 2 * 3 * 4 * report["parameters"] // 4}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--devices", "fsdp"], "'fsdp' is not a plan; expected 'single'"),
        (["--devices", "single", "--batch", "8"], "'8' is not a batch; expected ITEMSxLENGTH"),
    ],
)
def test_wrong_options(arguments, message):
    done = CliRunner().invoke(app, ["plan", "gpt2-tiny", *arguments])
    assert isinstance(done.exception, ZooError)
    assert message in str(done.exception)


@pytest.mark.slow
def test_the_table_in_the_docs_is_the_output():
    page = (Path(__file__).parents[4] / "docs" / "scaling.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    columns = {row[0]: row[1:] for row in rows}
    for index, devices in enumerate(columns["`gpt2-small`, batch 8x512"]):
        plan = make_plan("gpt2-small", parse_devices(devices), batch=parse_batch("8x512"))
        sizes = {name: format_bytes(size) for name, size in plan.sizes.items()}
        assert sizes == {name: columns[name][index] for name in sizes}
        assert columns["total at the peak"][index] == format_bytes(plan.total)
        assert columns["sent per update"][index] == format_bytes(sum(plan.communication.values()))


def test_parts_that_adapters_do_not_take_from_their_base_are_planned_as_trained(tmp_path):
    base = zoo.save(zoo.compose("gpt2-tiny"), tmp_path / "base.safetensors")
    style = {"type": "lora", "rank": 2, "targets": ["*.{query,value}"]}
    (tmp_path / "x.txt").write_text("a\n")
    spec = {
        "zoo": 1,
        "name": "tuned",
        "extends": "gpt2-tiny",
        "preprocessing": {"target": "text"},
        "adapters": {"style": style},
        "train": {
            "data": {"type": "plain-text", "files": str(tmp_path / "x.txt")},
            "optimiser": "adamw",
            "batch": {"items": 2, "block": 8},
            "steps": 1,
        },
    }
    gradients = []
    for parts in ({"decoder": "decoder", "embedding": "embedding"}, {"embedding": "embedding"}):
        spec["train"]["start"] = {"weights": str(base), "parts": parts}
        file = tmp_path / "tuned.yaml"
        file.write_text(json.dumps(spec))
        done = CliRunner().invoke(app, ["plan", str(file), "--json"])
        gradients.append(json.loads(done.output)["plan"]["sizes"]["gradients"])
    assert 0 < gradients[0] < gradients[1]
