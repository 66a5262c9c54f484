"""What the argument of ``zoo ui`` opens."""

import pytest

from zoo import ZooError
from zoo.cli.index import load_index
from zoo_ui.target import page_address


@pytest.fixture(scope="module")
def index():
    return load_index()


def test_names_of_specs_and_models(index):
    assert page_address("bahdanau-2015", index) == "/build?spec=bahdanau-2015"
    assert page_address("g2p-bahdanau", index) == "/models?model=g2p-bahdanau"
    assert page_address("org/name", index) == "/models?model=org%2Fname"
    assert page_address("hub:org/name@v1", index) == "/models?model=hub%3Aorg%2Fname%40v1"


def test_a_name_of_a_spec_and_of_shipped_weights_is_the_model(index):
    assert page_address("gat-cora", index) == "/models?model=gat-cora"


def test_files(index, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my spec.yaml").write_text("zoo: 1\n")
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert page_address("my spec.yaml", index).endswith("%2Fmy%20spec.yaml")
    assert page_address("my spec.yaml", index).startswith("/build?file=%2F")
    assert page_address("model.safetensors", index).startswith("/models?model=%2F")


def test_an_unknown_name_is_an_error(index):
    with pytest.raises(ZooError, match=r"no file, spec or model named 'missing.yaml'"):
        page_address("missing.yaml", index)
