"""`zoo import` and `zoo export` as a person runs them."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from typer.testing import CliRunner

import zoo
from zoo.cli import exchange_options
from zoo.cli.main import app
from zoo.exchange.import_plan import plan_import

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
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == code, done.output
    return done.output


def _refused(line):
    done = CliRunner().invoke(app, line.split())
    assert isinstance(done.exception, zoo.ZooError), done.output
    return str(done.exception)


def test_weights_come_in_and_go_out_bit_for_bit(folder):
    assert _run(IMPORT).startswith("model.safetensors: 12 tensors, ")
    theirs = load_file("weights.safetensors")
    model = zoo.load("model.safetensors")
    own = model.state_dict()
    assert torch.equal(own["decoder.cells.cells.0.weight_hh"], theirs["dec.w"].T[:, 4:])
    z, r, n = theirs["enc.wi"].T.chunk(3)
    assert torch.equal(own["encoder.stack.layers.0.0.weight_ih"], torch.cat([r, z, n]))
    assert not own["decoder.out.bias"].any()
    _run("export model.safetensors out --map map.yaml")
    again = load_file("out/model.safetensors")
    assert again.keys() == theirs.keys() - {"step"}
    assert all(torch.equal(again[name], theirs[name]) for name in again)


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


def test_a_file_to_write_is_asked_for(folder):
    line = IMPORT.removesuffix(" -o model.safetensors")
    assert _refused(line) == "say where to write the model: -o model.safetensors, or --dry-run"
    assert _run(f"{line} --dry-run").startswith("target ")


def test_a_dry_run_in_json(folder):
    read = json.loads(_run(f"{IMPORT} --dry-run --json"))
    assert read["dropped"] == ["step"]
    assert read["unused_rules"] == []
    assert len(read["tensors"]) == 12
    (row,) = [r for r in read["tensors"] if r["target"] == "decoder.cells.cells.0.weight_hh"]
    assert row == {
        "target": "decoder.cells.cells.0.weight_hh",
        "shape": [9, 3],
        "dtype": "float32",
        "sources": ["dec.w"],
        "operations": ["transpose", "split"],
        "line": 12,
    }


def test_an_export_has_a_dry_run_too(folder):
    _run(IMPORT)
    read = json.loads(_run("export model.safetensors out --map map.yaml --dry-run --json"))
    assert "dec.w" in [row["target"] for row in read["tensors"]]
    assert read["dropped"] == ["decoder.out.bias"]
    assert not (folder / "out").exists()


def test_an_export_that_would_lose_what_was_learned_is_refused(folder):
    _run(IMPORT)
    model = zoo.load("model.safetensors")
    with torch.no_grad():
        model.decoder.out.bias[2] = 0.1
    zoo.save(model, "model.safetensors")
    assert _refused("export model.safetensors out --map map.yaml") == (
        "'decoder.out.bias' has no place in the other layout and is no longer 0 throughout, "
        "so an export would lose it"
    )
    assert not (folder / "out").exists()


def test_another_type_is_taken_on_the_way(folder):
    _run(f"{IMPORT} --dtype bfloat16")
    assert {p.dtype for p in zoo.load("model.safetensors").parameters()} == {torch.bfloat16}
    _run("export model.safetensors out --map map.yaml --dtype float16")
    assert {t.dtype for t in load_file("out/model.safetensors").values()} == {torch.float16}


def test_what_does_not_fit_is_said_and_nothing_is_written(folder):
    message = _refused(f"{IMPORT} --set model.encoder.hidden=5 --set model.decoder.hidden=5")
    assert "map.yaml:9:5: convert[0]: 'encoder.stack.layers.0.0.weight_ih' becomes [9, 4], " in (
        message
    )
    assert len(message.splitlines()) == 9
    assert not list(folder.glob("*model*"))


def test_what_does_not_fit_is_told_to_programs_too(folder):
    (folder / "map.yaml").write_text(MAP.replace("  decoder.out.weight: out\n", ""))
    read = json.loads(_run(f"{IMPORT} --json", code=1))
    assert not read["ok"]
    assert [fault["message"] for fault in read["errors"]] == [
        "no rule takes 'out' [7, 3], and it is not dropped",
        "nothing fills 'decoder.out.weight' [7, 3] of the model",
    ]
    (folder / "map.yaml").write_text(MAP)
    _run(IMPORT)
    (folder / "map.yaml").write_text(MAP.replace("omit", "zeros"))
    read = json.loads(_run("export model.safetensors out --map map.yaml --json", code=1))
    assert read["errors"][0]["line"] == 16


def test_spec_and_map_go_together(folder):
    line = "import weights.safetensors --spec spec.yaml -o model.safetensors"
    assert _refused(line) == (
        "--spec and --map go together: what the model is, and where its weights go"
    )


def test_a_map_is_found_by_its_name(folder):
    line = "import weights.safetensors --spec spec.yaml --map g2p -o model.safetensors"
    assert _refused(line).startswith("no map named 'g2p'; did you mean 'g2p-en'? (available: ")


def test_a_file_that_is_no_safetensors_is_refused(folder):
    (folder / "weights.safetensors").write_bytes(b"nonsense")
    assert _refused(IMPORT).startswith("weights.safetensors is no readable safetensors file: ")


def test_a_place_that_cannot_be_written_is_said(folder):
    (folder / "full").mkdir()
    line = IMPORT.replace("-o model.safetensors", "-o {}")
    assert _refused(line.format("full")) == (
        "full is a directory; name the file, for example full/model.safetensors"
    )
    assert _refused(line.format("gone/model.safetensors")) == (
        "gone/model.safetensors could not be written: no such file or directory"
    )


def test_a_tokenizer_is_given_along(folder):
    words = {f"w{index}": index for index in range(7)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save("tokenizer.json")
    _run(f"{IMPORT} --tokenizer tokenizer.json")
    model = zoo.load("model.safetensors")
    by_text, by_ids = (
        zoo.generate(model, [said], sampler="greedy", max_length=3)[0][0].tokens
        for said in ("w3 w4", [3, 4])
    )
    assert by_text == by_ids
    tokenizer.add_tokens(["one too many"])
    tokenizer.save("tokenizer.json")
    assert _refused(f"{IMPORT} --tokenizer tokenizer.json") == (
        "the source tokenizer has 8 symbols, but the model only 7"
    )


def test_a_large_file_shows_progress_on_standard_error(folder, monkeypatch):
    monkeypatch.setattr(exchange_options, "MIN_PROGRESS_BYTES", 1)
    done = CliRunner().invoke(app, IMPORT.split())
    assert done.exit_code == 0
    assert done.stdout.startswith("model.safetensors: 12 tensors, ")


def test_a_job_that_breaks_leaves_the_old_file(folder, monkeypatch):
    _run(IMPORT)
    before = (folder / "model.safetensors").read_bytes()
    import_plan = plan_import("weights.safetensors", spec="spec.yaml", map="map.yaml")
    with pytest.raises(KeyboardInterrupt):
        import_plan.write("model.safetensors", progress=_interrupt)
    assert (folder / "model.safetensors").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == [
        "map.yaml", "model.safetensors", "spec.yaml", "weights.safetensors",
    ]  # fmt: skip


def _interrupt(done):
    raise KeyboardInterrupt


def test_shipped_maps_are_listed():
    listed = json.loads(_run("list --maps --json"))
    assert {"llama2c", "g2p-en", "gat-cora", "nano-ocr"} <= {row["name"] for row in listed}
    assert "llama2c" in _run("list --maps")
