"""The public names, and what it costs to import them."""

import subprocess
import sys
from pathlib import Path

import pytest

import zoo
import zoo.command

SURFACES = [zoo, zoo.command, zoo.plugin]


@pytest.mark.parametrize("surface", SURFACES, ids=lambda module: module.__name__)
def test_every_public_name_can_be_imported(surface):
    for name in surface.__all__:
        assert getattr(surface, name) is not None


def test_no_name_is_public_twice():
    names = [name for surface in SURFACES for name in surface.__all__]
    assert len(names) == len(set(names))


def test_authors_of_plugins_need_at_most_80_names():
    assert len(zoo.plugin.__all__) <= 80


def test_an_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'compoze'"):
        _ = zoo.compoze


def test_no_module_has_the_name_of_a_public_function():
    folder = Path(zoo.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} | {p.name for p in folder.iterdir()}
    assert not modules & set(zoo.__all__)


@pytest.mark.parametrize("call", ["import zoo", "import zoo.cli.main"])
def test_torch_is_imported_on_first_use_only(call):
    code = f"{call}\nimport sys; print([m for m in ('torch', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_full_precision_converts_half_precision_only():
    import torch

    for dtype in (torch.float16, torch.bfloat16):
        assert zoo.plugin.full_precision(torch.ones(2, dtype=dtype)).dtype is torch.float32
    for dtype in (torch.float32, torch.float64):
        tensor = torch.ones(2, dtype=dtype)
        assert zoo.plugin.full_precision(tensor) is tensor


def test_a_full_precision_function_is_not_changed_by_half_precision_or_autocast():
    import torch

    @zoo.plugin.full_precision
    def product(a, b):
        return a @ b

    a, b = torch.randn(2, 3), torch.randn(3, 2)
    expected = a @ b
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(product(a, b=b), expected)
    assert product(a.bfloat16(), b.bfloat16()).dtype is torch.float32
    assert product(a.double(), b.double()).dtype is torch.float64
    assert product(a.to("meta"), b.to("meta")).dtype is torch.float32
