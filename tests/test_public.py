"""The public names, and what it costs to import them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import zoo


def _typed_names():
    tree = ast.parse(Path(zoo.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.name: node.module for node in block.body for alias in node.names}


def test_type_checkers_and_python_see_the_same_names():
    assert _typed_names() == zoo._HOME_OF


@pytest.mark.parametrize("name", zoo.__all__)
def test_every_public_name_is_there(name):
    assert getattr(zoo, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'compoze'"):
        _ = zoo.compoze


def test_a_public_name_never_hides_behind_a_module_of_the_same_name():
    folder = Path(zoo.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} | {p.name for p in folder.iterdir()}
    assert not modules & set(zoo.__all__)


@pytest.mark.parametrize("call", ["import zoo", "import zoo.cli.main", "HELP"])
def test_torch_is_not_imported_before_it_is_needed(call):
    if call == "HELP":
        call = (
            "import sys; sys.argv = ['zoo', '--help']\nfrom zoo.cli.main import main\n"
            "try: main()\nexcept SystemExit: pass"
        )
    code = f"{call}\nimport sys; print([m for m in ('torch', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_full_precision_widens_halves_and_leaves_the_rest():
    import torch

    for half in (torch.float16, torch.bfloat16):
        assert zoo.full_precision(torch.ones(2, dtype=half)).dtype is torch.float32
    for wide in (torch.float32, torch.float64):
        tensor = torch.ones(2, dtype=wide)
        assert zoo.full_precision(tensor) is tensor
