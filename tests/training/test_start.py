"""Training that starts from the weights of another model."""

import json

import pytest
import torch
from tokenizers import Tokenizer
from training_kit import (
    LETTERS,
    Messages,
    assert_equal_weights,
    make_spec,
    read_log,
    weights,
    write_tokenizer,
)
from typer.testing import CliRunner

import zoo
from zoo.artifact import read_header
from zoo.cli.main import app
from zoo.training.spec_changes import find_changes

CLASSIFIER = {
    "zoo": 1,
    "name": "base-task",
    "model": {
        "type": "classifier",
        "source": {"type": "token", "vocab": 31, "dim": 16, "segments": 2},
        "classes": 3,
        "pooling": "first",
        "encoder": {
            "type": "transformer",
            "layers": 2,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
            "feed_forward": {"hidden": 32, "activation": "gelu"},
            "norm": {"eps": 1e-12, "embedding": True},
            "position": {"type": "learned", "length": 24},
        },
    },
    "objective": "cross-entropy",
}


FIELDS = {"source": {"column": "source"}, "target": {"column": "target", "content": "label"}}


@pytest.fixture(scope="module")
def base(files, tmp_path_factory):
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("base") / "run"
    zoo.train(make_spec(files, steps=2), output=folder, device="cpu")
    return folder


def _spec(files, **train):
    """A spec without preprocessing."""
    spec = make_spec(files, **{"steps": 1, "validation": None, **train})
    del spec["preprocessing"]
    return spec


def _train(spec, folder, **options):
    messages = Messages()
    zoo.train(spec, output=folder, device="cpu", callbacks=[messages], **options)
    return messages.texts


def _error(spec, folder, **options):
    with pytest.raises(zoo.ZooError) as caught:
        _train(spec, folder, **options)
    assert not (folder / "log.jsonl").exists()
    return str(caught.value)


def _classify(folder, base, **train):
    """A spec of a classifier of texts, and its data."""
    write_tokenizer(folder / "words.json", LETTERS)
    (folder / "train.csv").write_text("source,target\na b,x\nc d,y\ne f,z\n")
    data = {"type": "csv", "file": str(folder / "train.csv"), "fields": FIELDS}
    return {
        **CLASSIFIER,
        "preprocessing": {
            "source": {"type": "text", "tokenizer": str(folder / "words.json")},
            "target": "label",
        },
        "train": {"data": data, "optimiser": "adamw", "steps": 1, "start": str(base), **train},
    }


def test_a_training_continues_with_weights_preprocessing_and_tokenizer_of_its_base(
    files, base, tmp_path
):
    spec = _spec(files, start=str(base), optimiser={"type": "sgd", "lr": 1e-30})
    lines = _train(spec, tmp_path / "run")
    assert lines[1:] == [
        "taken: source, encoder, decoder (43 tensors)",
        "preprocessing of the base: source, target",
        "tokenizer of the base: source, target",
    ]
    assert_equal_weights(base / "model.safetensors", tmp_path / "run" / "model.safetensors")
    ours, theirs = (read_header(path) for path in (tmp_path / "run", base))
    assert ours.tokenizer == theirs.tokenizer
    assert ours.provenance["base"]["sha256"] == theirs.identity
    assert read_log(tmp_path / "run")[0]["start"] == ours.provenance["base"]


def test_the_command_takes_the_base_as_an_option_and_info_shows_the_lineage(files, base, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(_spec(files)))
    runner = CliRunner()
    checked = runner.invoke(app, ["check", str(path), "--from", str(base)])
    assert "taken: source, encoder, decoder (43 tensors)" in checked.output
    first, second = tmp_path / "first", tmp_path / "second"
    for start, folder in ((base, first), (first, second)):
        done = runner.invoke(
            app, ["train", str(path), "--from", str(start), "-o", str(folder), "--device", "cpu"]
        )
        assert done.exit_code == 0, done.output
    shown = runner.invoke(app, ["info", str(second)]).output
    hashes = [read_header(folder).identity for folder in (first, base)]
    lines = [line for line in shown.splitlines() if line.startswith("trained from: ")]
    assert [line.rpartition(" ")[2] for line in lines] == hashes


def test_a_spec_that_extends_a_model_starts_from_its_weights(files, base, tmp_path):
    train = _spec(files, optimiser={"type": "sgd", "lr": 1e-30})["train"]
    spec = {"extends": str(base), "name": "continued", "train": train}
    _train(spec, tmp_path / "run")
    assert_equal_weights(base / "model.safetensors", tmp_path / "run" / "model.safetensors")
    assert zoo.load_spec({"extends": str(base), "name": "only-spec"}).sections.train is None
    fresh = zoo.load_spec({**spec, "train": {**train, "start": None}})
    assert fresh.sections.train.build().start is None


def test_a_checkpoint_and_parts_of_a_model_are_taken(files, base, tmp_path):
    start = {
        "weights": str(base / "checkpoints" / "step-00000002"),
        "parts": {"source": "source", "encoder.blocks.0": "encoder.blocks.0"},
    }
    spec = make_spec(files, steps=1, start=start, optimiser={"type": "sgd", "lr": 1e-30})
    lines = _train(spec, tmp_path / "run")
    assert "fresh: decoder (26 tensors): not named in train.start.parts" in lines
    ours, theirs = (weights(path / "model.safetensors") for path in (tmp_path / "run", base))
    equal = {name.partition(".")[0] for name in ours if torch.equal(ours[name], theirs[name])}
    assert {"source", "encoder"} <= equal
    assert not torch.equal(*(w["decoder.blocks.0.attention.query.weight"] for w in (ours, theirs)))


def test_a_new_output_layer_starts_fresh(tmp_path):
    zoo.save(zoo.compose("bert-tiny", seed=3), tmp_path / "bert.safetensors")
    spec = _classify(tmp_path, tmp_path / "bert.safetensors")
    spec["train"]["optimiser"] = {"type": "sgd", "lr": 1e-30}
    lines = _train(spec, tmp_path / "run")
    assert "fresh: out (2 tensors): not in the base" in lines
    assert "not used of the base: bias, transform, norm" in lines
    ours = weights(tmp_path / "run" / "model.safetensors")
    theirs = weights(tmp_path / "bert.safetensors")
    taken = [name for name in ours if name.startswith(("source.", "encoder."))]
    assert len(taken) == len(ours) - 2
    for name in taken:  # biases of 0 change by the learning rate
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=1e-20)
    more = {**spec, "model": {**spec["model"], "classes": 4}}
    heads = {"scorer": "scaled-dot", "align": "soft", "heads": 4}
    more["model"]["encoder"] = {**spec["model"]["encoder"], "attention": heads}
    lines = _train(more, tmp_path / "again", start=str(tmp_path / "run"))
    assert any(line.startswith("fresh: out (2 tensors): weight is [3, 16]") for line in lines)
    assert "setting: encoder.attention.heads: 2 -> 4 (base -> here)" in lines


def test_a_grown_vocabulary_keeps_its_first_rows(files, base, tmp_path):
    write_tokenizer(tmp_path / "more.json", [*LETTERS, *"mnopqrstuvwxyz"])
    spec = make_spec(files, steps=1, start=str(base), optimiser={"type": "sgd", "lr": 1e-30})
    text = {"type": "text", "tokenizer": str(tmp_path / "more.json")}
    spec["preprocessing"] = {"source": text, "target": text}
    spec["model"]["source"] = {"vocab": 30}
    lines = _train(spec, tmp_path / "run")
    assert "fresh: source.table.weight: rows from 24 on" in lines
    ours, theirs = (weights(path / "model.safetensors") for path in (tmp_path / "run", base))
    assert ours["source.table.weight"].shape == (30, 16)
    assert torch.equal(ours["source.table.weight"][:24], theirs["source.table.weight"])
    stored = read_header(tmp_path / "run").tokenizer["source"]
    assert Tokenizer.from_str(stored).token_to_id("z") == 25


def test_another_tokenizer_is_rejected(files, base, tmp_path):
    write_tokenizer(tmp_path / "other.json", LETTERS[::-1])
    spec = make_spec(files, steps=1, start=str(base))
    text = {"type": "text", "tokenizer": str(tmp_path / "other.json")}
    spec["preprocessing"] = {"source": text, "target": text}
    message = _error(spec, tmp_path / "run")
    assert "preprocessing.source: the tokenizer does not fit" in message
    assert "token 'a' has the ID 4 in the base, but is 11 here" in message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"start": "missing.safetensors"}, "missing.safetensors"),
        ({"start": {"weights": "BASE", "sha256": "0" * 64}}, "the model has changed"),
        ({"start": {"weights": "BASE", "parts": {"encodr": "encoder"}}}, "did you mean 'encoder'"),
        ({"start": {"weights": "BASE", "parts": {"encoder": "decoder"}}}, "is only in the base"),
    ],
)
def test_a_base_that_is_missing_or_does_not_fit_is_rejected(
    files, base, tmp_path, change, expected
):
    change = json.loads(json.dumps(change).replace("BASE", str(base)))
    message = _error(make_spec(files, **change), tmp_path / "run")
    assert "train.start" in message
    assert expected in message


def test_differences_of_a_part_are_listed_with_the_line(files, base, tmp_path):
    spec = make_spec(files, start=str(base))
    spec["model"]["encoder"]["layers"] = 2
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps(spec, indent=2))
    with pytest.raises(zoo.SpecError) as caught:
        zoo.train(path, output=tmp_path / "run")
    (problem,) = caught.value.problems
    assert (problem.path, problem.place.file) == ("train.start", str(path))
    assert problem.place.line == 1 + path.read_text()[: path.read_text().index('"start"')].count(
        "\n"
    )
    assert "blocks.1.attention.query.weight [16, 16] is not in the base" in problem.message
    assert "and 13 more; name the parts to take in train.start.parts" in problem.message


def test_a_model_without_common_parts_is_rejected(files, tmp_path):
    zoo.save(zoo.compose("gpt2-tiny"), tmp_path / "gpt2.safetensors")
    spec = make_spec(files, start=str(tmp_path / "gpt2.safetensors"))
    assert "differs from 'decoder' of the base" in _error(spec, tmp_path / "run")
    zoo.save(zoo.compose("gat-tiny"), tmp_path / "gat.safetensors")
    spec = _classify(tmp_path, tmp_path / "gat.safetensors")
    assert "'encoder' differs" in _error(spec, tmp_path / "other")
    del spec["preprocessing"]
    lines = _error(spec, tmp_path / "other").splitlines()
    assert "'encoder' differs" in lines[0]
    assert "add preprocessing.source" in lines[1]


def test_damaged_weights_are_rejected(files, base, tmp_path):
    damaged = tmp_path / "model.safetensors"
    content = bytearray((base / "model.safetensors").read_bytes())
    content[-3] ^= 1
    damaged.write_bytes(content)
    message = _error(make_spec(files, start=str(damaged)), tmp_path / "run")
    assert "weights changed after they were saved" in message


def test_a_resumed_run_does_not_read_the_base_again(files, base, tmp_path):
    copied = tmp_path / "base.safetensors"
    copied.write_bytes((base / "model.safetensors").read_bytes())
    spec = _spec(files, start=str(copied), steps=4, checkpoints={"every": 2})
    _train(spec, tmp_path / "whole")
    half = {**spec, "train": {**spec["train"], "steps": 2}}
    _train(half, tmp_path / "run")
    copied.unlink()
    assert "no such file" in _error(spec, tmp_path / "new")
    _train(spec, tmp_path / "run", resume=True)
    runs = [tmp_path / name / "model.safetensors" for name in ("whole", "run")]
    assert_equal_weights(*runs)
    records = [read_header(path).provenance["base"] for path in runs]
    assert records[0] == records[1]
    later = {**spec, "train": {**spec["train"], "steps": 6}}
    other = tmp_path / "other.safetensors"
    zoo.save(zoo.load(tmp_path / "whole"), other)
    with pytest.raises(zoo.ZooError, match="the run has started from the old weights"):
        _train(later, tmp_path / "run", resume=True, start=str(other))
    for sha256, allowed in ((records[0]["sha256"], True), ("0" * 64, False)):
        pinned = {"weights": str(copied), "sha256": sha256}
        changed = {**later, "train": {**later["train"], "start": pinned}}
        if allowed:
            _train(changed, tmp_path / "run", resume=True)
        else:
            with pytest.raises(zoo.ZooError, match="the run has started from the old weights"):
                _train(changed, tmp_path / "run", resume=True)


def test_weights_are_converted_to_the_dtype_of_the_training(files, base, tmp_path):
    model = zoo.load(base, dtype="bfloat16")
    zoo.save(model, tmp_path / "half.safetensors")
    spec = _spec(files, start=str(tmp_path / "half.safetensors"))
    _train({**spec, "train": {**spec["train"], "steps": 1}}, tmp_path / "run")
    found = weights(tmp_path / "run" / "model.safetensors")
    assert {tensor.dtype for tensor in found.values()} == {torch.float32}


def test_the_weights_of_a_model_are_set_in_python(base):
    model = zoo.compose(dict(zoo.load(base).spec), seed=9)
    lines = zoo.start_from(model, str(base))
    assert "taken: source, encoder, decoder (43 tensors)" in lines
    loaded = zoo.load(base)
    assert model.tokenizer == loaded.tokenizer
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)
    other = zoo.compose("gpt2-tiny")
    with pytest.raises(zoo.ZooError, match="name the parts to take"):
        zoo.start_from(other, str(base))


def test_a_part_that_differs_is_listed_with_all_its_keys():
    part = {"kind": "layer", "place": "post", "eps": 1e-05, "embedding": False, "final": None}
    (change,) = find_changes({"norm": None}, {"norm": part | {"bias": True, "first": True}})
    assert str(change) == (
        "norm: not set -> {kind: layer, place: post, eps: 1e-05, embedding: False, final: not set, "
        "bias: True, first: True}"
    )
