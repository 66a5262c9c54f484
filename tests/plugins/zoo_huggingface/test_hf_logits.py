"""Every architecture, imported and exported, has the logits of transformers."""

import pytest
import torch
from hf_model_kit import compare_logits, export_and_load, hf_model, import_and_load
from hf_models import MODELS, SAME_CODE

import zoo

ATOL = 1e-5


def pytest_generate_tests(metafunc):
    """Run the tests with each model; exports of the same code, which random configs have too, are
    slow tests."""
    is_export = "exported" in metafunc.fixturenames
    names = [
        pytest.param(
            name, marks=pytest.mark.slow if is_export and config.model_type in SAME_CODE else ()
        )
        for name, (_, config) in MODELS.items()
    ]
    metafunc.parametrize("name", names, scope="module")


@pytest.fixture(scope="module")
def pair(name, tmp_path_factory):
    folder = tmp_path_factory.mktemp(name)
    theirs = hf_model(name)
    theirs.save_pretrained(folder / "theirs")
    return import_and_load(folder / "theirs", folder), theirs


@pytest.fixture(scope="module")
def exported(name, pair, tmp_path_factory):
    """A composed model, the folder of its export, and what transformers loads from it."""
    ours = zoo.compose(dict(pair[0].spec), seed=3).eval()
    ours.load_state_dict(pair[0].state_dict())
    return ours, *export_and_load(ours, tmp_path_factory.mktemp(name), name)


def test_an_imported_model_has_the_same_logits(name, pair):
    ours, theirs = pair
    actual, expected = compare_logits(name, ours, theirs)
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


def test_an_exported_model_has_the_same_logits(name, exported):
    ours, _, theirs = exported
    actual, expected = compare_logits(name, ours, theirs)
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


def test_export_and_import_are_bit_exact(exported, tmp_path):
    ours, folder, _ = exported
    imported = import_and_load(folder, tmp_path)
    assert imported.spec == ours.spec
    state = imported.state_dict()
    assert state.keys() == ours.state_dict().keys()
    for key, weight in ours.state_dict().items():
        assert torch.equal(state[key], weight), key
