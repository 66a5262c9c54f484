"""What the pages are written from: the index of plugins, the registry, facts and results."""

import json
import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from measure_facts import CARDS, LAWS, TREES, read_facts

from zoo.cli.index import ComponentRecord, Index, load_index
from zoo.interfaces import Entry
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo_lab.bench.result import BenchmarkReport, BenchmarkResult

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/attention-zoo/attention-zoo/blob/main/"
RESULTS = ROOT / "lab" / "benchmarks" / "results"
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


@dataclass(frozen=True)
class SiteData:
    """Everything that pages are written from, each part read when it is first used."""

    index: Index = field(default_factory=load_index)
    registry: ComponentRegistry = field(default_factory=default_registry)
    laws: dict[str, Any] = field(default_factory=lambda: read_facts(LAWS))
    trees: dict[str, Any] = field(default_factory=lambda: read_facts(TREES))
    cards: dict[str, Any] = field(default_factory=lambda: read_facts(CARDS))

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """The registered components by kind and name."""
        return {f"{each.kind}/{each.name}": each for each in self.registry.components()}

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """The specs that use a component, by kind and name."""
        found = defaultdict(list)
        for spec, tree in self.trees.items():
            for component in tree["uses"]:
                found[component].append(spec)
        return found

    @cached_property
    def accelerations(self) -> dict[str, list[ComponentRecord]]:
        """The accelerations of a class, by its full name."""
        found = defaultdict(list)
        for each in self.index.components("acceleration"):
            found[each.serves].append(each)
        return found

    @cached_property
    def speeds(self) -> dict[str, list[tuple[str, BenchmarkResult]]]:
        """The device and result of the measured benchmarks of a component, by kind and name."""
        file = Path(__file__).parent / "benchmarks.toml"
        measured = tomllib.loads(file.read_text(encoding="utf-8"))
        found = defaultdict(list)
        for path in sorted(RESULTS.glob("*.json")):
            report = BenchmarkReport.model_validate(json.loads(path.read_text(encoding="utf-8")))
            for result in report.results:
                if result.ours is None or result.changed:
                    continue
                for component in measured[result.benchmark]:
                    found[component].append((report.hardware["device"], result))
        return found


def component_page(component: ComponentRecord | Entry) -> str:
    """Return the path of a component's page."""
    return f"components/{component.kind}/{component.name}.md"


def class_name(cls: type) -> str:
    """Return the full name of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def paper_link(paper: str) -> str:
    """Return the name of a paper with a link to arXiv, if it names one."""
    return _ARXIV.sub(r"[arXiv:\1](https://arxiv.org/abs/\1)", paper)


def source_link(cls: type) -> str:
    """Return the path of a class's file in the repository, with a link to it."""
    parts = cls.__module__.split(".")
    top = ROOT if parts[0] == "zoo" else ROOT / "plugins"
    base = top.joinpath(*parts)
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    path = file.relative_to(ROOT).as_posix()
    return f"[`{path}`]({REPOSITORY}{path})"
