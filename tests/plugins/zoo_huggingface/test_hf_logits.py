"""Every architecture, imported and exported, has the logits of transformers."""

import pytest
import torch
from hf_model_kit import compare_logits, export_and_load, hf_model, import_and_load
from hf_models import MODELS

import zoo

ATOL = 1e-5


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


@pytest.fixture
def pair(name, tmp_path):
    theirs = hf_model(name)
    theirs.save_pretrained(tmp_path / "theirs")
    return import_and_load(tmp_path / "theirs", tmp_path), theirs


def test_an_imported_model_has_the_same_logits(name, pair):
    ours, theirs = pair
    actual, expected = compare_logits(name, ours, theirs)
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


def test_an_exported_model_has_the_same_logits(name, pair, tmp_path):
    ours = zoo.compose(dict(pair[0].spec), seed=3).eval()
    _, theirs = export_and_load(ours, tmp_path, name)
    actual, expected = compare_logits(name, ours, theirs)
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


def test_export_and_import_are_bit_exact(name, pair, tmp_path):
    ours, _ = pair
    (tmp_path / "imported").mkdir()
    folder, _ = export_and_load(ours, tmp_path, name)
    imported = import_and_load(folder, tmp_path / "imported")
    assert imported.spec == ours.spec
    state = imported.state_dict()
    assert state.keys() == ours.state_dict().keys()
    for key, weight in ours.state_dict().items():
        assert torch.equal(state[key], weight), key
