"""What a published model says of itself: a model card, a picture of its parts, a config.json."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from zoo.about import DISTRIBUTION, version
from zoo.hub.catalogue import CatalogueEntry, Result
from zoo.spec.report import Report, ReportNode

GENERATED_MARK = "<!-- Written by the zoo; remove this line, and it will not be written again. -->"
PICTURE = "tree.svg"
RESULTS = ".eval_results/zoo.yaml"
_LICENCES = (
    "afl-3.0 agpl-3.0 apache-2.0 artistic-2.0 bsd-2-clause bsd-3-clause bsl-1.0 cc0-1.0 cc-by-4.0 "
    "cc-by-nc-4.0 cc-by-nc-nd-4.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-sa-4.0 ecl-2.0 epl-2.0 gemma "
    "gpl-2.0 gpl-3.0 isc lgpl-2.1 lgpl-3.0 llama2 llama3 llama3.1 mit mpl-2.0 odbl odc-by openrail "
    "pddl unlicense wtfpl zlib"
)
_STYLE = (
    "rect{fill:#e8f0fe;stroke:#5b7fbd}.b{fill:#fff;stroke:none}.l{fill:none;stroke:#9aa7b8}"
    "text{font:13px sans-serif;fill:#1b1f24}.s{fill:#57606a}"
)


@dataclass(frozen=True)
class CardData:
    """All a card tells."""

    repo: str
    report: Report
    spec: Mapping[str, Any]
    providers: Sequence[Mapping[str, Any]]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    licence: str | None = None
    generation_input: str | None = None
    has_tokenizer: bool = False
    published: CatalogueEntry | None = None
    papers: Sequence[str] = ()
    """Of its parts; cited where no catalogue names the model's own."""

    @property
    def results(self) -> tuple[Result, ...]:
        return self.published.results if self.published else ()

    @property
    def metrics(self) -> dict[str, float]:
        """Numbers that the training noted in the file itself."""
        noted = self.provenance.get("metrics")
        rows = noted.items() if isinstance(noted, dict) else ()
        return {str(name): value for name, value in rows if type(value) in (int, float)}


def config_json(card_data: CardData) -> str:
    """``config.json``: little, because the weights' file says it all; the Hub counts by it."""
    about = {
        "library_name": DISTRIBUTION,
        "library_version": version(),
        "zoo_spec": card_data.spec["name"],
        "architecture": card_data.report.tree.type,
    }
    return json.dumps(about, indent=2) + "\n"


def model_card(card_data: CardData) -> str:
    """``README.md``: front matter for the Hub, the rest for people."""
    name = str(card_data.spec["name"])
    about = [GENERATED_MARK, f"# {name}", str(card_data.spec.get("description") or "").strip()]
    about.append(
        f"Type `{card_data.report.tree.type}`, {card_data.report.parameters:,} parameters. The file of the "
        "weights says all it takes to rebuild the model: its [spec](#spec) and its [parts](#parts)."
    )
    about += [f"![The parts of {name}]({PICTURE})", *_usage_section(card_data)]
    if card_data.results or card_data.metrics:
        about += ["## Results", _table(("metric", "value", "on"), _result_rows(card_data))]
    about += ["## Spec", _code_block("yaml", _yaml(dict(card_data.spec)))]
    rows = [
        (row["kind"], row["name"], f"{row['distribution']} {row['distribution_version']}")
        for row in card_data.providers
    ]
    about += ["## Parts", _table(("kind", "part", "from"), rows)]
    kept = {k: v for k, v in card_data.provenance.items() if k != "metrics"}
    if kept:
        about += ["## How it was made", _table(("what", "value"), list(kept.items()))]
    if card_data.licence:
        about += ["## Licence", card_data.licence]
    papers = [card_data.published.paper] if card_data.published else card_data.papers
    if papers:
        about += ["## Citation", "\n".join(f"- {html.escape(paper)}" for paper in papers)]
    return (
        f"---\n{_yaml(_front_matter(card_data))}---\n\n"
        + "\n\n".join(part for part in about if part)
        + "\n"
    )


def eval_results(card_data: CardData) -> str | None:
    """Results on benchmarks of the Hub, in its newer form; None if there are none."""
    rows = [
        {"dataset": {"id": r.dataset, "task_id": r.task}, "value": r.value, "notes": r.metric}
        | ({"source": {"url": r.source}} if r.source else {})
        for r in card_data.results
        if r.task and r.dataset.count("/") == 1
    ]
    return yaml.safe_dump(rows, sort_keys=False) if rows else None


def tree_svg(report: Report) -> str:
    """The tree of parts as a picture: one line a part, its type, shape and size."""
    rows = _rows(report.tree, 0)
    shapes = 36 + max(_indent(depth) + _width(part) for part, depth in rows)
    sizes = shapes + 40 + 8 * max(len(part.shape or "") + 12 for part, _ in rows)
    height = 24 + 30 * len(rows)
    drawn: list[str] = []
    parents: list[int] = []
    for index, (part, depth) in enumerate(rows):
        x, y = _indent(depth), 28 + 30 * index
        parents[depth:] = [y]
        if depth:
            drawn.append(f'<path d="M{x - 16} {parents[depth - 1] + 11}V{y}H{x}" class="l"/>')
        size = f"{part.parameters:,}" if part.parameters else ""
        drawn.append(
            f'<rect x="{x}" y="{y - 11}" width="{_width(part)}" height="22" rx="5"/>'
            f'<text x="{x + 8}" y="{y + 4}">{html.escape(_label(part))}</text>'
            f'<text x="{shapes}" y="{y + 4}" class="s">{html.escape(part.shape or "")}</text>'
            f'<text x="{sizes}" y="{y + 4}" class="s" text-anchor="end">{size}</text>'
        )
    title = html.escape(f"{report.name}: {report.parameters:,} parameters")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{sizes + 16}" height="{height}" '
        f'role="img"><title>{title}</title><style>{_STYLE}</style>'
        f'<rect width="100%" height="100%" class="b"/>{"".join(drawn)}</svg>\n'
    )


def _rows(part: ReportNode, depth: int) -> list[tuple[ReportNode, int]]:
    return [(part, depth), *(row for child in part.children for row in _rows(child, depth + 1))]


def _label(part: ReportNode) -> str:
    name = part.path.rpartition(".")[2] or "model"
    times = f" ×{part.count}" if part.count > 1 else ""
    return f"{name}{times}: {part.type}" if part.type else f"{name}{times}"


def _indent(depth: int) -> int:
    return 16 + 26 * depth


def _width(part: ReportNode) -> int:
    return 20 + 8 * len(_label(part))


def _front_matter(card_data: CardData) -> dict[str, Any]:
    front: dict[str, Any] = {
        "library_name": DISTRIBUTION,
        "tags": sorted({DISTRIBUTION, card_data.report.tree.type, str(card_data.spec["name"])}),
    }
    if card_data.generation_input == "prompt":
        front["pipeline_tag"] = "text-generation"
    if card_data.licence:
        front |= _licence_fields(card_data.licence)
    for key in ("base_model", "datasets", "language"):
        if isinstance(card_data.provenance.get(key), (str, list)):
            front[key] = card_data.provenance[key]
    index = [
        {
            "task": {"type": result.task or front.get("pipeline_tag", "other")},
            "dataset": {"name": result.dataset, "type": result.dataset}
            | ({"split": result.split} if result.split else {}),
            "metrics": [{"type": result.metric, "value": result.value}],
        }
        for result in card_data.results
    ]
    if index:
        front["model-index"] = [{"name": card_data.spec["name"], "results": index}]
    return front


def _licence_fields(name: str) -> dict[str, str]:
    """The Hub refuses a card with an identifier that it does not know."""
    word = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
    known = word in _LICENCES.split()
    return {"license": word} if known else {"license": "other", "license_name": word}


def _usage_section(card_data: CardData) -> list[str]:
    needed = " ".join(
        sorted({DISTRIBUTION, *(str(row["distribution"]) for row in card_data.providers)})
    )
    code = f'import zoo\n\nmodel = zoo.load("{card_data.repo}")'
    if card_data.generation_input and card_data.has_tokenizer:
        code += '\nzoo.generate(model, ["…"])'
    shell = _code_block("bash", f"pip install {needed}")
    return ["## How to load it", shell, _code_block("python", code)]


def _result_rows(card_data: CardData) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [
        (r.metric, r.value, f"{r.dataset} {r.split or ''}".strip()) for r in card_data.results
    ]
    noted = card_data.metrics.items()
    return rows + [(name, f"{value:.6g}", "told by whoever saved it") for name, value in noted]


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return html.escape(text, quote=False).replace("|", "\\|").replace("\n", " ")


def _yaml(data: Any) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)


def _code_block(language: str, text: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"
