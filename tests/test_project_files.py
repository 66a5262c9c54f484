"""pyproject.toml, constraints.txt, CITATION.cff and the workflows agree with each other."""

import tomllib

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging_kit import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = {
    canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
    for pin in [Requirement(line)]
}


def _yaml(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_constraints_pin_every_dependency_to_an_allowed_version():
    extras = PROJECT["optional-dependencies"].values()
    for text in [*PROJECT["dependencies"], *(text for extra in extras for text in extra)]:
        requirement = Requirement(text)
        if requirement.name != PROJECT["name"]:
            assert PINS[canonicalize_name(requirement.name)] in requirement.specifier, text


def test_citation_has_version_licence_and_address_of_the_project():
    citation = _yaml("CITATION.cff")
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Homepage"]


def test_ci_covers_every_declared_python_and_the_oldest_torch():
    jobs = _yaml(".github/workflows/ci.yml")["jobs"]
    declared = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    for job in ("gate", "test"):
        assert jobs[job]["strategy"]["matrix"]["python"] == declared
    (torch,) = [text for text in PROJECT["dependencies"] if Requirement(text).name == "torch"]
    oldest = jobs["test"]["strategy"]["matrix"]["torch"][0]
    assert f">={oldest.removeprefix('==').removesuffix('.*')}" in torch
