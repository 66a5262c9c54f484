"""The scan for distributions finds what `importlib.metadata` finds."""

import importlib.metadata
import sys
import zipfile
from pathlib import Path

import pytest
from plugin_kit import Site

from zoo.registry.distributions import GROUP, metadata_folders, plugin_distributions


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site", monkeypatch)


def found() -> set[tuple[str, str]]:
    return {
        (point.name, point.value)
        for distribution in plugin_distributions().values()
        for point in distribution.entry_points.select(group=GROUP)
    }


def expected() -> set[tuple[str, str]]:
    return {(p.name, p.value) for p in importlib.metadata.entry_points(group=GROUP)}


def test_this_environment() -> None:
    assert len(found()) >= 20
    assert found() == expected()
    assert next(iter(plugin_distributions())) == "attention-zoo"


def test_all_metadata_folders_are_listed() -> None:
    names = {Path(folder).name.lower() for folder in metadata_folders()}
    for distribution in importlib.metadata.distributions():
        assert Path(str(distribution._path)).name.lower() in names  # type: ignore[attr-defined]


def test_dist_info_egg_info_and_archives(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.declare("kit-dist", "[zoo]\na = kit_dist\n")
    site.declare("kit-none", "[console_scripts]\nb = kit_none:main\n")
    egg = site.folder / "kit_egg.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: kit-egg\nVersion: 1\n")
    (egg / "entry_points.txt").write_text("[zoo]\nc = kit_egg\n")
    (site.folder / "kit_old-1.egg-info").write_text("Metadata-Version: 1.0\nName: kit-old\n")
    archive = site.folder / "kit.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("kit_zip-1.dist-info/METADATA", "Name: kit-zip\nVersion: 1\n")
        file.writestr("kit_zip-1.dist-info/entry_points.txt", "[zoo]\nd = kit_zip\n")
    monkeypatch.syspath_prepend(archive)
    assert {"a", "c", "d"} <= {name for name, _ in found()}
    assert found() == expected()


def test_the_first_of_a_name_hides_the_others(site: Site, tmp_path: Path) -> None:
    site.declare("kit-same", "[zoo]\nlater = kit_later\n", version="1.0")
    nearer = tmp_path / "nearer" / "Kit.Same-2.0.dist-info"
    nearer.mkdir(parents=True)
    (nearer / "METADATA").write_text("Metadata-Version: 2.1\nName: Kit.Same\nVersion: 2.0\n")
    sys.path.insert(0, str(nearer.parent))
    try:
        assert "kit-same" not in plugin_distributions()
        assert found() == expected()
    finally:
        sys.path.remove(str(nearer.parent))


def test_missing_directories_and_files_on_the_path_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert list(metadata_folders([str(tmp_path / "missing"), str(tmp_path / "file")])) == []
