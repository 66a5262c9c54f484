"""weights/ship.py, and the shipped weights: files, catalogue, notice and results agree."""

import os
import runpy
import tomllib
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
from packaging_kit import ROOT
from recipe_kit import write_recipe

import zoo
from zoo.artifact import named_tensors
from zoo.errors import ZooError
from zoo.hub.catalogue import Result, read_catalogue
from zoo.hub.models import read_header
from zoo.hub.shipped import find_shipped
from zoo.registry.component_registry import default_registry
from zoo_lab.reproduce.recipe_file import read_recipe
from zoo_lab.reproduce.recipe_run import run_recipe
from zoo_lab.reproduce.seed_run import SeedOptions
from zoo_lab.reproduce.shipped_result import FIRST, measure_shipped

SHIP = runpy.run_path(str(ROOT / "weights" / "ship.py"))
MODELS = [model for model in read_catalogue(ROOT / "registry.yaml") if model.shipped]
NAMES = [model.name for model in MODELS]
DATA = Path(os.environ.get("ZOO_DATA", "../shared/data"))


@pytest.fixture
def data(request, monkeypatch):
    recipe = read_recipe(request.getfixturevalue("model").shipped.recipe, check=False).recipe
    if missing := [name for name in recipe.data if not (DATA / name).is_dir()]:
        pytest.skip(f"set ZOO_DATA to a folder with {', '.join(missing)}")
    monkeypatch.setenv("ZOO_DATA", str(DATA.resolve()))


def _texts(value):
    """Yield all texts in JSON values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_file_is_a_model_of_its_recipe_in_bfloat16(model):
    header = read_header(find_shipped(model).path)
    recipe = read_recipe(model.shipped.recipe, check=False)
    keys = ("zoo", "name", "model")
    stored = zoo.load_spec({key: header.spec[key] for key in keys}).resolve()  # with new defaults
    assert stored["model"] == zoo.load_spec(recipe.spec).resolve()["model"]
    assert header.spec["name"] == recipe.name == model.name
    assert model.shipped.dtype == "bfloat16"
    assert "F32" not in header.dtypes
    assert [text for text in _texts([header.spec, header.provenance]) if text.startswith("/")] == []
    licences = SHIP["find_licences"](recipe.recipe.data)
    assert licences == model.shipped.as_json()["data"] == header.provenance["data_licences"]


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_results_of_the_catalogue_are_those_of_the_committed_file(model):
    result, recipe = SHIP["read_result"](model.name), read_recipe(model.shipped.recipe, check=False)
    assert (result.sha256, result.bytes) == (model.shipped.sha256, model.shipped.bytes)
    assert (result.name, result.recipe) == (model.name, model.shipped.recipe)
    rows = SHIP["result_rows"](recipe, result)
    assert list(model.results) == [Result(**row) for row in rows]
    assert result.training.seed == recipe.recipe.seeds[0]
    assert result.training.fingerprint == recipe.fingerprint
    for run in (result, result.training):
        assert run.command
        assert run.commit
        assert run.hardware["device"]


@pytest.mark.parametrize("name", sorted(default_registry().recipes))
def test_a_word_error_rate_of_other_units_is_not_called_so(name):
    for figure in read_recipe(name, check=False).recipe.figures:
        if figure.value.endswith("/wer") and not figure.label.startswith("word error"):
            assert figure.metric_label == f"{figure.label} rate"


def test_the_pronunciation_model_has_a_phoneme_error_rate():
    (model,) = (model for model in MODELS if model.name == "g2p-bahdanau")
    assert [result.name for result in model.results] == ["phoneme error rate", "exact-match"]


def test_files_and_notice_are_those_of_the_catalogue():
    folder = ROOT / SHIP["FILES"]
    files = {path.relative_to(ROOT).as_posix() for path in folder.glob("*.safetensors")}
    assert files == {model.shipped.file for model in MODELS}
    SHIP["check_total"](MODELS)
    assert (ROOT / SHIP["NOTICE"]).read_text(encoding="utf-8") == SHIP["render_notice"](MODELS)
    results = {path.stem for path in (ROOT / SHIP["RESULTS"]).glob("*.json")}
    assert results == set(NAMES)


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_the_licence_is_that_of_the_data_if_it_requires_one(model):
    header = read_header(find_shipped(model).path)
    share_alike = any("BY-SA" in data.licence for data in model.shipped.data)
    assert model.licence == ("CC-BY-SA-4.0" if share_alike else "Apache-2.0")
    assert header.provenance.get("licence") == ("CC-BY-SA-4.0" if share_alike else None)


def test_the_package_has_the_licences_of_all_models():
    project = tomllib.loads((ROOT / "weights/pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    assert set(project["license"].split(" AND ")) == {model.licence for model in MODELS}
    assert project["license-files"] == ["LICENSE", "zoo_weights/NOTICE.md"]
    own = ROOT / "weights" / "LICENSE"
    assert own.read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_spellings_of_either_case_have_the_same_pronunciation():
    model = zoo.load("g2p-bahdanau")
    upper, lower, mixed = zoo.generate(model, ["HELLO", "hello", "Hello"])
    assert upper[0].text == lower[0].text == mixed[0].text == "HH EH L OW"


@pytest.mark.parametrize(
    ("vocab", "expected"), [("AB'", "AB'AB"), ("ab'", "ab'ab"), ("Ab'a", "ab'A?")]
)
def test_case_is_folded_if_a_tokenizer_has_letters_of_one_case(vocab, expected):
    tokens = {token: index for index, token in enumerate(["?", *vocab])}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(tokens, unk_token="?"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    folded = tokenizers.Tokenizer.from_str(SHIP["fold_case"](backend.to_str()))
    assert "".join(folded.encode("ab'AB").tokens) == expected


def test_images_of_another_size_than_the_training_images_are_rejected():
    model = zoo.load("ram-mnist")
    zoo.predict(model, [np.zeros((28, 28), np.uint8)])
    expected = r"the image is 60 x 60 \(height x width\), but the model takes 28 x 28; resize"
    with pytest.raises(ZooError, match=expected):
        zoo.predict(model, [np.zeros((60, 60), np.uint8)])


def test_the_extra_requires_the_version_of_the_weights():
    project, weights = (
        tomllib.loads((ROOT / name).read_text(encoding="utf-8"))["project"]
        for name in ("pyproject.toml", "weights/pyproject.toml")
    )
    expected = [f"{weights['name']}=={weights['version']}"]
    assert project["optional-dependencies"]["weights"] == expected


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_first_hypotheses_are_those_of_the_committed_file(model, data):
    committed = SHIP["read_result"](model.name)
    found = measure_shipped(model, committed.training, examples=1).hypotheses
    expected = {name: texts.first[:1] for name, texts in committed.hypotheses.items()}
    assert {name: texts.first for name, texts in found.items()} == expected


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_results_and_all_hypotheses_are_those_of_the_committed_file(model, data):
    committed = SHIP["read_result"](model.name)
    found = measure_shipped(model, committed.training)
    assert found.hypotheses == committed.hypotheses
    assert found.values == pytest.approx(committed.values, rel=1e-9)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a small recipe, and a project to ship it in."""
    root = tmp_path_factory.mktemp("project")
    recipe = read_recipe(write_recipe(root))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZOO_DATA", str(root / "data"))
        for _ in run_recipe(recipe, root / "runs", SeedOptions(torch.device("cpu")), [3]):
            pass
    (root / "registry.yaml").write_text(
        "# Models.\nzoo: 1\nmodels:\n"
        "  - {name: other, spec: bahdanau-2015, paper: p, licence: l}\n"
        "  - name: letters\n    spec: bahdanau-reversal\n    paper: 'a: b'\n    licence: MIT\n"
    )
    licences = root / "weights" / "data_licences.yaml"
    licences.parent.mkdir()
    licences.write_text("letters: {licence: CC0, attribution: Me, url: 'https://example.org'}")
    return root


def test_run_is_shipped_and_measured_again(run, monkeypatch):
    monkeypatch.setenv("ZOO_DATA", str(run / "data"))
    folder = run / "runs" / "letters" / "seed-3"
    source = str(run / "letters.yaml")
    first = SHIP["ship"](folder, root=run, recipe_source=source)
    text = (run / "registry.yaml").read_text()
    assert text.startswith("# Models.\nzoo: 1\nmodels:\n  - {name: other, ")
    other, letters = read_catalogue(run / "registry.yaml")
    assert (other.shipped, letters.paper, letters.licence) == (None, "a: b", "MIT")
    trained = named_tensors(zoo.load(folder / "model.safetensors"))
    stored = named_tensors(zoo.load(find_shipped(letters).path))
    texts = [*_texts(read_header(find_shipped(letters).path).spec)]
    assert [text for text in texts if text.startswith("/")] == []
    for name, tensor in stored.items():
        torch.testing.assert_close(tensor, trained[name].bfloat16(), rtol=0, atol=0)
    assert letters.results[0].value == round(first.values["test/exact-match"], 4)
    assert len(first.hypotheses["test"].texts) == min(FIRST, first.hypotheses["test"].count)
    notice = (run / SHIP["NOTICE"]).read_text()
    assert "- `letters`: the weights are licensed under MIT.\n  Trained on letters. Me." in notice
    assert SHIP["read_result"]("letters", run) == first

    described = SHIP["describe"]("letters", root=run)
    assert described == first
    assert (run / "registry.yaml").read_text() == text
    again = SHIP["measure"]("letters", root=run)
    assert (again.values, again.hypotheses) == (first.values, first.hypotheses)
    assert (run / "registry.yaml").read_text() == text


def test_other_runs_are_rejected(run, monkeypatch, tmp_path):
    monkeypatch.setenv("ZOO_DATA", str(run / "data"))
    model = run / "runs" / "letters" / "seed-3" / "model.safetensors"
    alone = tmp_path / model.name
    alone.write_bytes(model.read_bytes())
    source = str(run / "letters.yaml")
    with pytest.raises(ZooError, match=r"result\.json is missing; pass a folder"):
        SHIP["ship"](alone, root=run, recipe_source=source)
    with pytest.raises(ZooError, match="has no licence of letters"):
        SHIP["ship"](model, recipe_source=source)
    with pytest.raises(ZooError, match="'other' has no shipped weights"):
        SHIP["measure"]("other", root=run)
