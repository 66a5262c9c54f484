"""docs/notebooks are executed as written, and stored without outputs."""

import json

import pytest
from docs_kit import DOCS

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def _read(file):
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs(file, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    notebook = nbformat.read(file, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, resources=resources, timeout=300).execute()
    shown = [cell for cell in notebook.cells if cell.get("outputs")]
    assert shown


def test_there_are_three_notebooks_without_outputs():
    assert [file.stem for file in NOTEBOOKS] == ["compare", "look-inside", "plugin"]
    for file in NOTEBOOKS:
        cells = _read(file)["cells"]
        assert cells[0]["source"][0].startswith("# ")
        for cell in cells:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None
