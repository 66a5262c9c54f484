"""The catalogue: line numbers of problems, catalogues of plugins, and the installed file."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from plugin_kit import Site, scorer

from zoo.errors import RegistryError, SpecError
from zoo.hub.catalogue import Catalogue, builtin_file, load_catalogue, read_catalogue
from zoo.registry.component_registry import default_registry

ROOT = Path(__file__).parents[2]
COMMIT, SHA256 = "c" * 40, "5" * 63 + "a"
GOOD = f"""
zoo: 1
models:
  - name: mine
    spec: bahdanau-2015
    paper: Me 2026, Mine
    licence: MIT
    weights: {{hub: me/mine, revision: {COMMIT}, sha256: {SHA256}}}
    results:
      - {{metric: bleu, value: 28, dataset: Multi30k, split: test}}
  - {{name: bare, spec: own.yaml, paper: p, licence: l}}
"""


def write_catalogue(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "more.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_catalogue_is_read(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("zoo: 1")
    mine, bare = read_catalogue(write_catalogue(tmp_path, GOOD))
    assert mine.weights is not None
    assert (mine.weights.hub, mine.weights.file) == ("me/mine", "model.safetensors")
    assert mine.results[0].value == 28
    assert bare.weights is None
    assert mine.spec_path() == default_registry().spec("bahdanau-2015")
    assert bare.spec_path() == tmp_path / "own.yaml"
    found = Catalogue([mine, bare])
    for words, names in ((["ME", "multi30k"], ["mine"]), ([], ["mine", "bare"]), (["x"], [])):
        assert [model.name for model in found.search(words)] == names


BAD = {
    "no mapping": ("- 1", "1:1: should be a mapping"),
    "no version": ("models: []", "key 'zoo' is missing"),
    "another version": ("zoo: 2\nmodels: []", "1:6: zoo: is 2, but should be less than or equal"),
    "no list": ("zoo: 1\nmodels: {a: 1}", "2:9: models: should be a list"),
    "a row that is none": ("zoo: 1\nmodels: [1]", r"2:10: models\[0\]: should be a mapping"),
    "unknown key": (GOOD.replace("licence: MIT", "license: MIT"), "7:5: .*did you mean 'licence'"),
    "lacks a key": (GOOD.replace("    paper: Me 2026, Mine\n", ""), "4:5: .*'paper' is missing"),
    "a moving revision": (GOOD.replace(COMMIT, "main"), "8:39: .*revision: is 'main'"),
    "a short hash": (GOOD.replace(SHA256, "abc"), "8:.*sha256: is 'abc'"),
    "a path for a repository": (GOOD.replace("me/mine", "../../x"), "8:20: .*hub: is '../../x'"),
    "an address for one": (GOOD.replace("me/mine", "'https://x/y'"), "8:20: .*hub: is 'https"),
    "a file outside": (
        GOOD.replace("{hub:", "{file: ../x, hub:"),
        "8:21: .*file: is '../x'",
    ),
    "a shipped file outside": (
        GOOD.replace("licence: MIT", "licence: MIT\n    shipped: {file: a/../../x}"),
        "8:21: .*file: is 'a/../../x'",
    ),
    "an endpoint of its own": (
        GOOD.replace("{hub:", "{endpoint: x, hub:"),
        "unknown key 'endpoint'",
    ),
    "no number": (GOOD.replace("28", "many"), "10:31: .*value: is 'many'"),
    "repeated name": (
        GOOD.replace("bare", "mine"),
        r"11:12: models\[1\].name: 'mine' is listed twice",
    ),
    "a tag": ("zoo: 1\nmodels: !!python/name:os.system x", "2:9: tag '.*os.system'"),
    "an empty file": ("", "is empty"),
}


@pytest.mark.parametrize("fault", BAD)
def test_problem_has_its_line_number(tmp_path: Path, fault: str) -> None:
    text, message = BAD[fault]
    with pytest.raises(SpecError, match=rf"more\.yaml:.*{message}|more\.yaml:{message}"):
        read_catalogue(write_catalogue(tmp_path, text))


def test_all_problems_are_reported(tmp_path: Path) -> None:
    text = GOOD.replace(COMMIT, "main").replace("28", "many").replace("licence: MIT", "x: 1")
    with pytest.raises(SpecError) as caught:
        read_catalogue(write_catalogue(tmp_path, text))
    assert len(caught.value.problems) == 4


def test_name_in_two_catalogues_raises(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.yaml", "two.yaml")]
    for file in files:
        file.write_text(GOOD)
    with pytest.raises(RegistryError, match=r"'mine' is listed in .*one.yaml and .*two.yaml"):
        load_catalogue(files).get("mine")


HOOK = """
from pathlib import Path
@hookimpl
def zoo_catalogues():
    return {answer}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site", monkeypatch)


def test_plugin_can_provide_a_catalogue_without_components(tmp_path: Path, site: Site) -> None:
    file = write_catalogue(tmp_path, GOOD)
    site.add("kit-both", scorer("kit-both", HOOK.format(answer=f"[{str(file)!r}]")))
    other = tmp_path / "other.yaml"
    other.write_text(GOOD.replace("mine", "theirs").replace("bare", "plain"))
    source = "from zoo.plugin import hookimpl\n" + HOOK.format(answer=f"[Path({str(other)!r})]")
    site.add("kit-only", source)
    registry = site.registry()
    assert not [p.errors for p in registry.plugins if p.errors]
    known = load_catalogue(registry=registry)
    assert {"mine", "bare", "theirs", "plain"} <= {model.name for model in known.models}
    assert known.get("theirs").file == other


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("'x.yaml'", "zoo_catalogues returned 'x.yaml', not a list of paths"),
        ("[7]", "zoo_catalogues returned 7, which is not a file"),
        ("['/no/where.yaml']", "zoo_catalogues returned '/no/where.yaml', which is not a file"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_invalid_result_of_a_plugin_is_recorded(site: Site, answer: str, fault: str) -> None:
    site.add("kit-odd", scorer("kit-odd", HOOK.format(answer=answer)))
    registry = site.registry()
    (plugin,) = (p for p in registry.plugins if p.distribution == "kit-odd")
    assert fault in plugin.errors[0]
    assert load_catalogue(registry=registry).get("vit-base")


def test_invalid_catalogue_of_a_plugin_is_skipped(tmp_path: Path, site: Site) -> None:
    file = write_catalogue(tmp_path, "zoo: 1\nmodels: 3")
    site.add("kit-broken", scorer("kit-broken", HOOK.format(answer=f"[{str(file)!r}]")))
    known = load_catalogue(registry=site.registry())
    assert known.get("vit-base")
    (problem,) = known.problems
    assert problem.startswith("plugin 'kit-broken' (kit-broken): ")
    assert "more.yaml:2:9" in problem
    with pytest.raises(RegistryError, match=r"invalid catalogues: plugin 'kit-broken'"):
        known.get("nothing")


def test_built_in_catalogue_is_that_of_the_checkout() -> None:
    assert builtin_file().samefile(ROOT / "registry.yaml")


@pytest.mark.slow
def test_wheel_contains_the_catalogue_and_its_specs(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("zoo/registry.yaml") == (ROOT / "registry.yaml").read_bytes()
        archive.extractall(tmp_path / "site")
    code = (
        "from zoo.hub.catalogue import builtin_file, load_catalogue; print(builtin_file());"
        "print(*(m.spec_path() for m in load_catalogue().models), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    paths = [Path(line) for line in done.stdout.splitlines()]
    assert len(paths) == 1 + len(read_catalogue(ROOT / "registry.yaml"))
    assert all(path.is_relative_to(tmp_path / "site") for path in paths)
