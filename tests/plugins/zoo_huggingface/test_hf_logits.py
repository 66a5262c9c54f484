"""Every architecture, brought in and taken out, says what it says in transformers."""

import pytest
import torch
from hf_model_kit import MODELS, compare_logits, export_and_load, hf_model, import_and_load

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


def test_a_model_brought_in_has_the_same_logits(name, pair):
    ours, theirs = pair
    actual, expected = compare_logits(name, ours, theirs)
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


def test_a_model_made_here_and_taken_out_has_the_same_logits(name, pair, tmp_path):
    ours = zoo.compose(dict(pair[0].spec), seed=3).eval()
    _, theirs = export_and_load(ours, tmp_path, name)
    actual, expected = compare_logits(name, ours, theirs)
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


def test_out_and_in_again_is_the_same_to_the_bit(name, pair, tmp_path):
    ours, _ = pair
    (tmp_path / "again").mkdir()
    folder, _ = export_and_load(ours, tmp_path, name)
    again = import_and_load(folder, tmp_path / "again")
    assert again.spec == ours.spec
    state = again.state_dict()
    assert state.keys() == ours.state_dict().keys()
    for key, weight in ours.state_dict().items():
        assert torch.equal(state[key], weight), key
