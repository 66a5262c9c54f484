"""What a published model says of itself: a model card, a picture of its parts, a config.json."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from zoo.about import DISTRIBUTION, version
from zoo.catalogue import Published, Result
from zoo.report import Part, Report

MARK = "<!-- Written by the zoo; remove this line, and it will not be written again. -->"
PICTURE = "tree.svg"
RESULTS = ".eval_results/zoo.yaml"


@dataclass(frozen=True)
class Facts:
    """All a card tells."""

    repo: str
    report: Report
    spec: Mapping[str, Any]
    lock: Sequence[Mapping[str, Any]]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    licence: str | None = None
    reads: str | None = None
    published: Published | None = None

    @property
    def results(self) -> tuple[Result, ...]:
        return self.published.results if self.published else ()

    @property
    def metrics(self) -> dict[str, float]:
        """Numbers that the training noted in the file itself."""
        noted = self.provenance.get("metrics")
        rows = noted.items() if isinstance(noted, dict) else ()
        return {str(name): value for name, value in rows if type(value) in (int, float)}


def config(facts: Facts) -> str:
    """``config.json``: little, because the weights' file says it all; the Hub counts by it."""
    about = {
        "library_name": DISTRIBUTION,
        "library_version": version(),
        "zoo_spec": facts.spec["name"],
        "architecture": facts.report.tree.type,
    }
    return json.dumps(about, indent=2) + "\n"


def card(facts: Facts) -> str:
    """``README.md``: front matter for the Hub, the rest for people."""
    name = str(facts.spec["name"])
    about = [MARK, f"# {name}", str(facts.spec.get("description") or "").strip()]
    about.append(
        f"{article(facts.report.tree.type)} model of {facts.report.parameters:,} parameters, made "
        f"with the zoo, whose [spec](#spec) is all it takes to rebuild it."
    )
    about += [f"![The parts of {name}]({PICTURE})", *_loading(facts)]
    if facts.results or facts.metrics:
        about += ["## Results", _table(("metric", "value", "on"), _measured(facts))]
    about += ["## Spec", _fenced("yaml", yaml.safe_dump(dict(facts.spec), sort_keys=False))]
    rows = [
        (row["kind"], row["name"], f"{row['distribution']} {row['distribution_version']}")
        for row in facts.lock
    ]
    about += ["## Parts", _table(("kind", "part", "from"), rows)]
    kept = {k: v for k, v in facts.provenance.items() if k != "metrics"}
    if kept:
        about += ["## How it was made", _table(("what", "value"), list(kept.items()))]
    if facts.licence:
        about += ["## Licence", facts.licence]
    if facts.published:
        about += ["## Citation", facts.published.paper]
    front = yaml.safe_dump(_front(facts), sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n\n" + "\n\n".join(part for part in about if part) + "\n"


def eval_results(facts: Facts) -> str | None:
    """Results on benchmarks of the Hub, in its newer form; None if there are none."""
    rows = [
        {"dataset": {"id": r.dataset, "task_id": r.task}, "value": r.value, "notes": r.metric}
        | ({"source": {"url": r.source}} if r.source else {})
        for r in facts.results
        if r.task and r.dataset.count("/") == 1
    ]
    return yaml.safe_dump(rows, sort_keys=False) if rows else None


def tree_svg(report: Report) -> str:
    """The tree of parts as a picture: one line a part, its type, shape and size."""
    lines: list[str] = []
    rows = list(_rows(report.tree, 0))
    parents: list[int] = []
    for index, (part, depth) in enumerate(rows):
        y = 34 + 30 * index
        x = 16 + 26 * depth
        parents[depth:] = [y]
        if depth:
            lines.append(
                f'<path d="M{x - 16} {parents[depth - 1] + 11}V{y}H{x}" fill="none" class="l"/>'
            )
        lines.append(f'<rect x="{x}" y="{y - 11}" width="{_width(part)}" height="22" rx="5"/>')
        name = part.path.rpartition(".")[2] or "model"
        times = f" ×{part.count}" if part.count > 1 else ""
        said = f"{name}{times}: {part.type}" if part.type else f"{name}{times}"
        lines.append(f'<text x="{x + 8}" y="{y + 4}">{html.escape(said)}</text>')
        size = f"{part.parameters:,}" if part.parameters else ""
        lines.append(
            f'<text x="430" y="{y + 4}" class="s">{html.escape(part.shape or "")}</text>'
            f'<text x="740" y="{y + 4}" class="s" text-anchor="end">{size}</text>'
        )
    height = 34 + 30 * len(rows)
    title = html.escape(f"{report.name}: {report.parameters:,} parameters")
    style = (
        "rect{fill:#e8f0fe;stroke:#5b7fbd}text{font:13px sans-serif;fill:#1b1f24}"
        ".s{fill:#57606a}.l{stroke:#9aa7b8}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height}" role="img">'
        f"<title>{title}</title><style>{style}</style>"
        f'<rect width="760" height="{height}" style="fill:#ffffff;stroke:none"/>'
        f"{''.join(lines)}</svg>\n"
    )


def article(word: str) -> str:
    return f"{'An' if word[:1] in 'aeiou' else 'A'} {word}"


def _rows(part: Part, depth: int) -> list[tuple[Part, int]]:
    return [(part, depth), *(row for child in part.children for row in _rows(child, depth + 1))]


def _width(part: Part) -> int:
    name = part.path.rpartition(".")[2] or "model"
    return 26 + 8 * len(f"{name}: {part.type}" + (f" ×{part.count}" if part.count > 1 else ""))


def _front(facts: Facts) -> dict[str, Any]:
    front: dict[str, Any] = {
        "library_name": DISTRIBUTION,
        "tags": sorted({DISTRIBUTION, facts.report.tree.type, str(facts.spec["name"])}),
    }
    if facts.reads == "prompt":
        front["pipeline_tag"] = "text-generation"
    if facts.licence:
        front["license"] = facts.licence.lower()
    for key in ("base_model", "datasets", "language"):
        if isinstance(facts.provenance.get(key), (str, list)):
            front[key] = facts.provenance[key]
    index = [
        {
            "task": {"type": result.task or front.get("pipeline_tag", "other")},
            "dataset": {"name": result.dataset, "type": result.dataset}
            | ({"split": result.split} if result.split else {}),
            "metrics": [{"type": result.metric, "value": result.value}],
        }
        for result in facts.results
    ]
    if index:
        front["model-index"] = [{"name": facts.spec["name"], "results": index}]
    return front


def _loading(facts: Facts) -> list[str]:
    code = f'import zoo\n\nmodel = zoo.load("{facts.repo}")'
    if facts.reads:
        code += '\nzoo.generate(model, ["…"])'
    return ["## How to load it", _fenced("python", code)]


def _measured(facts: Facts) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [
        (r.metric, r.value, f"{r.dataset} {r.split or ''}".strip()) for r in facts.results
    ]
    return rows + [(name, value, "") for name, value in facts.metrics.items()]


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return html.escape(text, quote=False).replace("|", "\\|").replace("\n", " ")


def _fenced(language: str, text: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"
