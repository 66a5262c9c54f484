"""The commands `zoo import` and `zoo export`."""

import json
import re

import numpy
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from typer.testing import CliRunner

import zoo
from zoo.cli import progress
from zoo.cli.main import app
from zoo_exchange.import_plan import plan_import

SPEC = """\
zoo: 1
name: small
model:
  type: seq2seq
  source: {type: token, vocab: 7, dim: 4}
  encoder: {type: gru, hidden: 3}
  decoder: {type: plain-rnn, cell: gru, hidden: 3, init: copy}
"""
MAP = """\
zoo: 1
rename:
  source.table.weight: enc.emb
  decoder.embedding.table.weight: dec.emb
  encoder.stack.layers.0.0.bias_{s:ih|hh}: enc.b{s:i|h}
  decoder.cells.cells.0.bias_{s:ih|hh}: dec.b{s:i|h}
  decoder.out.weight: out
convert:
  - theirs: enc.w{s:i|h}
    do: [transpose, {gates: {theirs: zrn, ours: rzn}}]
    ours: encoder.stack.layers.0.0.weight_{s:ih|hh}
  - theirs: dec.w
    do: [transpose, {split: {dim: 1, sections: [4, 3]}}]
    ours: [decoder.cells.cells.0.weight_ih, decoder.cells.cells.0.weight_hh]
fill: {decoder.out.bias: zeros}
drop: [{name: step, export: omit}]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "map.yaml").write_text(MAP)
    torch.manual_seed(0)
    shapes = {"enc.emb": (7, 4), "dec.emb": (7, 4), "out": (7, 3), "dec.w": (7, 9)}
    shapes |= {"enc.wi": (4, 9), "enc.wh": (3, 9)}
    shapes |= {f"{side}.b{s}": (9,) for side in ("enc", "dec") for s in "ih"}
    tensors = {name: torch.randn(shape) for name, shape in shapes.items()}
    save_file({**tensors, "step": torch.tensor(5)}, "weights.safetensors")
    return tmp_path


IMPORT = "import weights.safetensors --spec spec.yaml --map map.yaml -o model.safetensors"


def _run(line, code=0):
    result = CliRunner().invoke(app, line.split())
    assert result.exit_code == code, result.output
    return result.output


def _error(line):
    result = CliRunner().invoke(app, line.split())
    assert isinstance(result.exception, zoo.ZooError), result.output
    return str(result.exception)


def test_import_and_export_are_bit_exact(folder):
    assert _run(IMPORT).startswith("model.safetensors: 12 tensors, ")
    theirs = load_file("weights.safetensors")
    model = zoo.load("model.safetensors")
    ours = model.state_dict()
    assert torch.equal(ours["decoder.cells.cells.0.weight_hh"], theirs["dec.w"].T[:, 4:])
    z, r, n = theirs["enc.wi"].T.chunk(3)
    assert torch.equal(ours["encoder.stack.layers.0.0.weight_ih"], torch.cat([r, z, n]))
    assert not ours["decoder.out.bias"].any()
    _run("export model.safetensors out --map map.yaml")
    exported = load_file("out/model.safetensors")
    assert exported.keys() == theirs.keys() - {"step"}
    assert all(torch.equal(exported[name], theirs[name]) for name in exported)


def test_a_dry_run_prints_the_table_and_writes_nothing(folder):
    printed = _run(f"{IMPORT} --dry-run").splitlines()
    assert printed[0].split() == ["target", "shape", "dtype", "from", "by"]
    (row,) = [line for line in printed if "encoder.stack.layers.0.0.weight_ih" in line]
    assert row.strip().split(maxsplit=5) == [
        "encoder.stack.layers.0.0.weight_ih", "[9,", "4]", "float32", "enc.wi",
        "transpose, gates zrn -> rzn",
    ]  # fmt: skip
    assert "dropped: step" in printed
    assert not (folder / "model.safetensors").exists()


MERGE = "  decoder.out.weight: out\n", "  decoder.out.weight: out_{n}\n"


def test_a_dry_run_compares_tensors_that_are_merged(folder):
    (folder / "map.yaml").write_text(MAP.replace(*MERGE))
    theirs = load_file("weights.safetensors")
    out = theirs.pop("out")
    save_file(theirs | {"out_0": out, "out_1": out.clone()}, "weights.safetensors")
    _run(f"{IMPORT} --dry-run")
    save_file(theirs | {"out_0": out, "out_1": out + 0.5}, "weights.safetensors")
    message = _error(f"{IMPORT} --dry-run")
    assert "map.yaml:7:3: rename.decoder.out.weight: " in message
    assert re.search("'out_0' and 'out_1' differ by up to 0.5; they should be equal", message)
    assert len(message.splitlines()) == 1


def test_a_dry_run_of_an_export_compares_tensors_that_are_merged(folder):
    _run(IMPORT)
    rule = '  - {theirs: dec.b, ours: "decoder.cells.cells.0.bias_{s:ih|hh}", do: [copy]}'
    shared = MAP.replace("  decoder.cells.cells.0.bias_{s:ih|hh}: dec.b{s:i|h}\n", "")
    (folder / "map.yaml").write_text(shared.replace("convert:", f"convert:\n{rule}"))
    message = _error("export model.safetensors out --map map.yaml --dry-run")
    assert re.search(r"map\.yaml:8:5: .*bias_ih' and '.*bias_hh' differ by up to ", message)


def test_import_without_an_output_file_raises(folder):
    line = IMPORT.removesuffix(" -o model.safetensors")
    assert re.search("-o .*--dry-run", _error(line))
    assert "missing.bin: no such file or folder" in _error("import missing.bin")
    assert _run(f"{line} --dry-run").startswith("target ")


def test_a_dry_run_in_json(folder):
    printed = json.loads(_run(f"{IMPORT} --dry-run --json"))
    assert printed["dropped"] == ["step"]
    assert printed["unused_rules"] == []
    assert len(printed["tensors"]) == 12
    (row,) = [r for r in printed["tensors"] if r["target"] == "decoder.cells.cells.0.weight_hh"]
    assert row == {
        "target": "decoder.cells.cells.0.weight_hh",
        "shape": [9, 3],
        "dtype": "float32",
        "sources": ["dec.w"],
        "operations": ["transpose", "split"],
        "line": 12,
    }


def test_a_dry_run_of_an_export(folder):
    _run(IMPORT)
    printed = json.loads(_run("export model.safetensors out --map map.yaml --dry-run --json"))
    assert "dec.w" in [row["target"] for row in printed["tensors"]]
    assert printed["dropped"] == ["decoder.out.bias"]
    assert not (folder / "out").exists()


def test_an_export_that_would_lose_a_changed_parameter_raises(folder):
    _run(IMPORT)
    model = zoo.load("model.safetensors")
    with torch.no_grad():
        model.decoder.out.bias[2] = 0.1
    zoo.save(model, "model.safetensors")
    assert "'decoder.out.bias'" in _error("export model.safetensors out --map map.yaml")
    assert not (folder / "out").exists()


def test_dtype_converts_on_import_and_export(folder):
    _run(f"{IMPORT} --dtype bfloat16")
    assert {p.dtype for p in zoo.load("model.safetensors").parameters()} == {torch.bfloat16}
    _run("export model.safetensors out --map map.yaml --dtype float16")
    assert {t.dtype for t in load_file("out/model.safetensors").values()} == {torch.float16}


def test_problems_are_reported_and_nothing_is_written(folder):
    message = _error(f"{IMPORT} --set model.encoder.hidden=5 --set model.decoder.hidden=5")
    problem = r"map\.yaml:9:5: convert\[0\]: 'encoder\.stack\.layers\.0\.0\.weight_ih' .*\[9, 4\]"
    assert re.search(problem, message)
    assert len(message.splitlines()) == 9
    assert not list(folder.glob("*model*"))


def test_problems_are_printed_as_json(folder):
    (folder / "map.yaml").write_text(MAP.replace("  decoder.out.weight: out\n", ""))
    printed = json.loads(_run(f"{IMPORT} --json", code=1))
    assert not printed["ok"]
    named = [
        re.search(r"'(out|decoder\.out\.weight)' \[7, 3\]", e["message"])[1]
        for e in printed["errors"]
    ]
    assert named == ["out", "decoder.out.weight"]
    (folder / "map.yaml").write_text(MAP)
    _run(IMPORT)
    (folder / "map.yaml").write_text(MAP.replace("omit", "zeros"))
    printed = json.loads(_run("export model.safetensors out --map map.yaml --json", code=1))
    assert printed["errors"][0]["line"] == 16


def test_a_spec_without_a_map_raises(folder):
    line = "import weights.safetensors --spec spec.yaml -o model.safetensors"
    assert re.search("--spec .*--map", _error(line))


def test_an_unknown_map_name_suggests_the_nearest(folder):
    line = "import weights.safetensors --spec spec.yaml --map g2p -o model.safetensors"
    assert re.search("'g2p'.*'g2p-en'.*zoo list --maps", _error(line))


def test_an_invalid_safetensors_file_raises(folder):
    (folder / "weights.safetensors").write_bytes(b"nonsense")
    assert re.search("weights.safetensors .*safetensors file", _error(IMPORT))


def test_an_output_that_cannot_be_written_raises(folder):
    (folder / "full").mkdir()
    line = IMPORT.replace("-o model.safetensors", "-o {}")
    assert re.search("full .*directory", _error(line.format("full")))
    message = _error(line.format("gone/model.safetensors"))
    assert re.search(r"gone/model\.safetensors .*no such file or directory", message)


def test_a_tokenizer_is_stored_in_the_model(folder):
    words = {f"w{index}": index for index in range(7)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save("tokenizer.json")
    _run(f"{IMPORT} --tokenizer tokenizer.json")
    model = zoo.load("model.safetensors")
    by_text, by_ids = (
        zoo.generate(model, [prompt], sampler="greedy", max_length=3)[0][0].tokens
        for prompt in ("w3 w4", [3, 4])
    )
    assert by_text == by_ids
    tokenizer.add_tokens(["one too many"])
    tokenizer.save("tokenizer.json")
    assert re.search("source.* 8 .* 7", _error(f"{IMPORT} --tokenizer tokenizer.json"))


def test_a_large_file_shows_progress_on_standard_error(folder, monkeypatch):
    monkeypatch.setattr(progress, "MIN_PROGRESS_BYTES", 1)
    result = CliRunner().invoke(app, IMPORT.split())
    assert result.exit_code == 0
    assert result.stdout.startswith("model.safetensors: 12 tensors, ")


def test_an_interrupted_import_leaves_the_old_file(folder, monkeypatch):
    _run(IMPORT)
    before = (folder / "model.safetensors").read_bytes()
    import_plan = plan_import("weights.safetensors", spec="spec.yaml", map="map.yaml")
    with pytest.raises(KeyboardInterrupt):
        import_plan.write("model.safetensors", progress=_interrupt)
    assert (folder / "model.safetensors").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == [
        "map.yaml", "model.safetensors", "spec.yaml", "weights.safetensors",
    ]  # fmt: skip


def _interrupt(nbytes):
    raise KeyboardInterrupt


def test_shipped_maps_are_listed():
    listed = json.loads(_run("list --maps --json"))
    assert {"llama2c", "g2p-en", "gat-cora", "nano-ocr"} <= {row["name"] for row in listed}
    assert "llama2c" in _run("list --maps")


def test_a_check_runs_on_the_device_that_is_named(folder):
    batch = {"source": torch.tensor([[1, 2, 3]]), "target": torch.tensor([[1, 4]])}
    plan = plan_import("weights.safetensors", spec="spec.yaml", map="map.yaml")
    with torch.no_grad():
        logits = plan.load().eval()(batch).logits
    arrays = {f"batch.{key}": value.numpy() for key, value in batch.items()}
    numpy.savez("check.npz", **arrays, **{"output.logits": logits.numpy()})
    command = [*IMPORT.split(), "--check", "check.npz"]
    done = CliRunner().invoke(app, [*command, "--device", "nowhere"])
    assert "nowhere" in str(done.exception)
    assert not (folder / "model.safetensors").exists()
    done = CliRunner().invoke(app, [*command, "--device", "cpu"])
    assert done.exit_code == 0, done.exception
