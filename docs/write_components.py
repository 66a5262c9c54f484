"""Write docs/components.md from the installed plugins and the catalogue."""

import os
from collections.abc import Iterable
from pathlib import Path

from zoo.cli.index import Index, load_index
from zoo.spec.document import read_file

PAGE = Path(__file__).parent / "components.md"
CATALOGUE = Path(__file__).parents[1] / "registry.yaml"
INTRODUCTION = (
    "Written by `python docs/write_components.py`. `zoo list` prints the components of the "
    "installed plugins, `zoo show NAME` one with its equation, paper and parameters, `zoo "
    "catalogue` the models."
)
OMITTED = ("acceleration", "benchmark")
"""Kinds that no spec names."""


def main() -> None:
    """Write the page."""
    os.environ["ZOO_PLUGINS"] = "none"  # other installed plugins have documentation of their own
    PAGE.write_text(page(load_index()), encoding="utf-8")


def page(index: Index) -> str:
    """Return the text of the page."""
    lines = [
        "# Components",
        "",
        INTRODUCTION,
    ]
    components = [each for each in index.components(None) if each.kind not in OMITTED]
    for kind in sorted({each.kind for each in components}):
        rows = [
            (f"`{each.name}`", each.summary, each.paper, each.plugin)
            for each in components
            if each.kind == kind
        ]
        lines += ["", f"## Kind: {kind}", "", *_table(("name", "", "paper", "plugin"), rows)]
    models = read_file(CATALOGUE).data["models"]
    published = [(f"`{m['name']}`", m.get("paper", "")) for m in models if "spec" in m]
    lines += ["", "## Specs of published models", "", *_table(("name", "paper"), published)]
    shipped = [(f"`{m['name']}`", _results(m)) for m in models if "shipped" in m]
    lines += ["", "## Trained models in the repository", "", *_table(("name", "result"), shipped)]
    others = sorted({*index.specs} - {m["name"] for m in models})
    lines += ["", "## Other specs", "", "Small models to extend, and models of the tests and docs:"]
    lines += [", ".join(f"`{name}`" for name in others) + "."]
    importers = [(f"`{each.name}`", each.summary) for each in index.importers]
    lines += ["", "## Importers", "", *_table(("name", ""), importers)]
    return "\n".join(lines) + "\n"


def _results(model: dict[str, list[dict[str, object]]]) -> str:
    return ", ".join(
        f"{r.get('label', r['metric'])} {r['value']} ({r['dataset']})" for r in model["results"]
    )


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    return [f"| {' | '.join(row)} |" for row in (header, ("---",) * len(header), *cells)]


if __name__ == "__main__":
    main()
