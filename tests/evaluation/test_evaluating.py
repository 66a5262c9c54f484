"""`zoo.evaluate` on datasets in files."""

import functools

import pytest
import sacrebleu
import torch
from kits.evaluation_kit import random_tokens, varied_translator

import zoo
from zoo.errors import DataError, SpecError, ZooError
from zoo.evaluation.datasets import find_dataset
from zoo.registry.component_registry import default_registry

PREPROCESSING = {"source": {"type": "text"}, "target": {"type": "text"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved translator with its provenance, and the files of its test data."""
    folder = tmp_path_factory.mktemp("run")
    generator = torch.Generator().manual_seed(0)
    for name in ("test.en", "test.de", "other.de"):
        rows = [row.tolist() for row in random_tokens(7, 16, generator)]
        lines = (" ".join(f"w{token}" for token in row) for row in rows)
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = {key: str(folder / f"test.{end}") for key, end in (("source", "en"), ("target", "de"))}
    section = {"data": None, "test": {"type": "datasets:parallel-text", **files}}
    model = varied_translator(metrics=["chrf", "accuracy"], preprocessing=PREPROCESSING)
    provenance = {"train": {"section": section}}
    zoo.save(model, folder / "model.safetensors", provenance=provenance)
    for name in ("log.jsonl", "spec.yaml"):
        (folder / name).touch()
    return folder


def test_the_default_data_is_the_test_data_of_the_training(folder):
    result = zoo.evaluate(folder, max_length=9)
    hypotheses = [
        zoo.generate(zoo.load(folder), [line], max_length=9)[0][0].text
        for line in (folder / "test.en").read_text(encoding="utf-8").splitlines()
    ]
    references = (folder / "test.de").read_text(encoding="utf-8").splitlines()
    assert result.hypotheses == hypotheses
    assert result.values["chrf"] == pytest.approx(
        sacrebleu.corpus_chrf(hypotheses, [references]).score
    )
    assert list(result.values) == ["loss", "chrf", "accuracy"]
    assert result.data["source"] == str(folder / "test.en")
    assert result.sampler == {"type": "sampling:greedy"}
    assert (result.examples, result.skipped) == (7, {})


@pytest.mark.parametrize("batch", [1, 3])
def test_hypotheses_do_not_depend_on_the_batch_size(folder, batch):
    expected, result = (zoo.evaluate(folder, max_length=9, batch=size) for size in (32, batch))
    assert result.hypotheses == expected.hypotheses
    assert result.values == pytest.approx(expected.values, rel=1e-5)


def test_model_is_converted_to_a_dtype(folder):
    data = {"type": "parallel-text"}
    data |= {"source": str(folder / "test.en"), "target": str(folder / "test.de")}
    model = zoo.load(folder)
    expected = zoo.evaluate(folder, max_length=9, dtype="float64")
    result = zoo.evaluate(model, data, max_length=9, dtype="float64")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float64}
    assert result.values == expected.values
    assert expected.values["loss"] != zoo.evaluate(folder, max_length=9).values["loss"]


def test_parameters_of_the_dataset_are_replaced(folder):
    result = zoo.evaluate(
        folder,
        {"target": [str(folder / "test.de"), str(folder / "other.de")]},
        metrics=["bleu"],
        overrides=["bleu.tokenize=none", "sampler=beam", "sampler.width=2"],
        max_length=5,
        max_examples=4,
    )
    assert result.examples == len(result.hypotheses) == 4
    assert [len(texts) for texts in result.references] == [2] * 4
    assert result.signatures["bleu"].startswith("nrefs:2|case:mixed|eff:no|tok:none")
    assert result.sampler == {"type": "beam", "width": 2}


def test_the_same_type_keeps_the_parameters_of_the_training():
    trained = {"type": "datasets:stories", "files": "train.txt", "punctuation": False}
    find = functools.partial(find_dataset, {"test": trained}, None, registry=default_registry())
    for name in ("stories", "datasets:stories"):
        dataset = find({"type": name, "files": "test.txt"}).build()
        assert (dataset.files, dataset.punctuation) == (["test.txt"], False)
    with pytest.raises(SpecError, match="no dataset named 'storeis'"):
        find({"type": "storeis", "files": "test.txt"})


def test_another_file_of_a_split_is_evaluated_as_a_whole():
    table = {"type": "csv", "file": "all.csv", "fields": {"target": {"column": "t"}}}
    trained = {"type": "split", "part": "held-out", "data": table, "fraction": 0.2}
    nested = {"type": "split", "part": "held-out", "data": trained}
    for base in (trained, nested):
        find = functools.partial(find_dataset, {"test": base}, None, registry=default_registry())
        found = find({"file": "test.csv", "quoting": False})
        assert found.resolve() == {"type": "csv", **table, **found.resolve(), "file": "test.csv"}
        assert (found.build().file, found.build().quoting) == ("test.csv", False)
        assert found.build().fields() == find({}).build().fields()
        kept = find({"fraction": 0.5}).build()
        assert (kept.fraction, kept.part) == (0.5, "held-out")
        for wrong in ("data.file", "files"):
            with pytest.raises(SpecError, match=rf"unknown.*'?{wrong}.*\bfile\b"):
                find({wrong: "test.csv"})


def test_a_model_that_was_never_saved_needs_a_whole_dataset(folder):
    model = varied_translator(preprocessing=PREPROCESSING).train()
    model.spec = {**model.spec, "metrics": []}
    data = {"type": "parallel-text", "source": str(folder / "test.en")}
    result = zoo.evaluate(model, {**data, "target": str(folder / "test.de")})
    assert set(result.values) == {"loss"}
    assert model.training
    with pytest.raises(ZooError, match=r"no dataset to evaluate on.*--data type=parallel-text"):
        zoo.evaluate(model)
    with pytest.raises(SpecError, match="set either 'source' and 'target', or 'file'"):
        zoo.evaluate(model, data)


def test_a_model_without_preprocessing_gets_it_from_an_override(folder):
    model = varied_translator()
    data = {"type": "parallel-text", "source": str(folder / "test.en")}
    data["target"] = str(folder / "test.de")
    with pytest.raises(SpecError, match=r"contains text; add preprocessing\.source \(prep.* text"):
        zoo.evaluate(model, data)
    overrides = ["preprocessing.source=text", "preprocessing.target=text"]
    result = zoo.evaluate(model, data, metrics=["perplexity"], overrides=overrides, max_examples=2)
    assert result.values["perplexity"] > 1
    assert model.spec["preprocessing"] == {}


def test_errors(folder):
    with pytest.raises(ZooError, match=r"takes label sets.*metrics that fit: accuracy, bleu"):
        zoo.evaluate(folder, metrics=["micro-f1"])
    with pytest.raises(ZooError, match="not trained with a dataset 'validation': it has test"):
        zoo.evaluate(folder, part="validation")
    with pytest.raises(ZooError, match="part is 'train'; expected one of test, validation, data"):
        zoo.evaluate(folder, part="train")
    with pytest.raises(DataError, match=r"missing\.en: no such file$"):
        zoo.evaluate(folder, {"source": "missing.en"})
    with pytest.raises(ZooError, match=r"'blue' is not one of the parts.*did you mean 'bleu'"):
        zoo.evaluate(folder, metrics=["bleu"], overrides=["blue.tokenize=intl"])
    with pytest.raises(ZooError, match="max_examples is 0"):
        zoo.evaluate(folder, max_examples=0)


def test_missing_files_of_the_training_name_the_option(folder, tmp_path):
    model = zoo.load(folder)
    files = {"source": "moved.en", "target": "moved.de"}
    section = {"validation": {"type": "parallel-text", **files}}
    path = zoo.save(
        model, tmp_path / "model.safetensors", provenance={"train": {"section": section}}
    )
    with pytest.raises(DataError, match=r"moved\.en: no such file .*set other files with --data"):
        zoo.evaluate(path, part="validation")


def test_files_of_another_persons_model_are_read_only_with_part(folder, tmp_path):
    downloaded = tmp_path / "model.safetensors"
    downloaded.write_bytes((folder / "model.safetensors").read_bytes())
    for source in (downloaded, tmp_path):
        with pytest.raises(ZooError, match=r"are read only with --part \(it has test\); pass one"):
            zoo.evaluate(source)
    with pytest.raises(ZooError, match="read only with --part"):
        zoo.evaluate(downloaded, {"source": str(folder / "test.en")})
    data = {"type": "parallel-text", "source": str(folder / "test.en")}
    with pytest.raises(SpecError, match="set either 'source' and 'target'"):
        zoo.evaluate(downloaded, data)  # the target of the provenance is not used
    assert zoo.evaluate(downloaded, part="test", max_examples=1, max_length=2).examples == 1
    assert zoo.evaluate(folder / "model.safetensors", max_examples=1, max_length=2).examples == 1
