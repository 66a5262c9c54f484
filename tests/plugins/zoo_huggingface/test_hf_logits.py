"""Every architecture, brought in and taken out, says what it says in transformers."""

import pytest
import torch
from importer_kit import MODELS, both_logits, brought_in, taken_out, their_model

import zoo

ATOL = 1e-5


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


@pytest.fixture
def pair(name, tmp_path):
    theirs = their_model(name)
    theirs.save_pretrained(tmp_path / "theirs")
    return brought_in(tmp_path / "theirs", tmp_path), theirs


def test_a_model_brought_in_has_the_same_logits(name, pair):
    ours, theirs = pair
    actual, expected = both_logits(name, ours, theirs)
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


def test_a_model_made_here_and_taken_out_has_the_same_logits(name, pair, tmp_path):
    ours = zoo.compose(dict(pair[0].spec), seed=3).eval()
    _, theirs = taken_out(ours, tmp_path, name)
    actual, expected = both_logits(name, ours, theirs)
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


def test_out_and_in_again_is_the_same_to_the_bit(name, pair, tmp_path):
    ours, _ = pair
    (tmp_path / "again").mkdir()
    folder, _ = taken_out(ours, tmp_path, name)
    again = brought_in(folder, tmp_path / "again")
    assert again.spec == ours.spec
    state = again.state_dict()
    assert state.keys() == ours.state_dict().keys()
    for key, weight in ours.state_dict().items():
        assert torch.equal(state[key], weight), key
