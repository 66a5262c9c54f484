"""The wheel with the packages of each extra alone: everything works, or names the extra it needs.

The environment of the tests has all extras, which hides imports that an extra does not provide.
"""

import json
import re
from pathlib import Path

import pytest
from extras_kit import (
    EXTRAS,
    PROJECT,
    ExtraEnvironment,
    NotInstalled,
    closure,
    requirements,
)
from packaging.requirements import Requirement
from packaging_kit import ROOT, build

SMOKE = Path(__file__).parent / "kits" / "extra_smoke.py"

# What needs an extra, by the beginning of its name.
NEEDS = {
    "backbone torchvision": {"vision"},
    "metric ": {"metrics"},
    "dataset hf-datasets": {"datasets"},
    "zoo tokenizer train": {"text"},
    "zoo train": {"train"},
    "zoo compare": {"train", "view"},
    "zoo generate g2p-bahdanau": {"weights", "text"},
    "zoo ui": {"ui"},
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    return build("wheel", ROOT, folder / "zoo"), build(
        "wheel", ROOT / "weights", folder / "weights"
    )


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["", *sorted({*EXTRAS} - {"test"})])
def test_with_one_extra_everything_works_or_names_the_extra_it_needs(extra, wheels, tmp_path):
    zoo, weights = wheels
    try:
        environment = ExtraEnvironment(
            tmp_path,
            *([zoo, weights] if extra == "weights" else [zoo]),
            extras=[extra] if extra else [],
        )
    except NotInstalled as reason:
        pytest.skip(str(reason))
    output = environment.python(str(SMOKE), extra or "none").splitlines()[-1]
    failures = json.loads(output)
    for thing, message in failures.items():
        named = set(re.findall(r"pip install 'attention-zoo\[(\w+)\]'", message))
        needed = [extras for start, extras in NEEDS.items() if thing.startswith(start)]
        assert needed, f"{thing}: {message}"
        assert named, f"{thing}: {message}"
        assert named <= needed[0], f"{thing}: {message}"
        assert not any(_provides(extra, each) for each in named), f"{thing}: {message}"


def _provides(extra: str, named: str) -> bool:
    """Return whether an environment with an extra has all packages of another one."""
    if extra == named:
        return True
    if "weights" in (extra, named):
        return False
    try:
        needed = closure(requirements([named])).keys()
        return needed <= closure(requirements([extra] if extra else [])).keys()
    except NotInstalled:
        return False


def test_the_packages_of_an_extra_are_those_that_it_requires():
    base, ui, metrics = (
        closure(requirements(extras)).keys() for extras in ([], ["ui"], ["metrics"])
    )
    assert {"torch", "numpy", "sympy", "typer", "rich", "pygments"} <= base
    assert not {"starlette", "datasets", "pytest", "nltk", "pillow", "transformers"} & base
    assert ui - base == {"starlette", "uvicorn"}
    assert {"jiwer", "rapidfuzz", "nltk", "joblib"} <= metrics - base


def test_a_package_that_is_missing_or_too_old_is_named():
    with pytest.raises(NotInstalled, match=r"absent-package>=1 is not installed"):
        closure([Requirement("absent-package>=1")])
    with pytest.raises(NotInstalled, match=r"pluggy>=99: \d.* is installed"):
        closure([Requirement("pluggy>=99")])


def test_every_extra_that_a_message_names_exists():
    """`MissingExtra` gives the command to run, which must install something."""
    named = {
        extra
        for folder in ("zoo", "plugins")
        for file in (ROOT / folder).rglob("*.py")
        for extra in re.findall(
            r'MissingExtra\([^)]*\bextra="(\w+)"', file.read_text(encoding="utf-8")
        )
    }
    assert {"text", "train", "ui"} <= named <= PROJECT["optional-dependencies"].keys()
