"""A page for each component and each kind, and the list of all."""

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

from docstrings import parse
from page_text import code, code_block, link, prose, relative, table
from site_data import SiteData, class_name, component_page, paper_link, source_link

from zoo.cli.index import ComponentRecord
from zoo.cli.index.records import ParameterRecord
from zoo.interfaces import KINDS
from zoo.testing.laws import LAWS
from zoo_lab.bench.bench_table import comparison_rows

_LAWS = (
    "Every component of the kind is tested against these laws; `zoo test-plugin` runs them on "
    "those of your plugin."
)
_COMPONENTS = (
    "Each has a page with its equation, parameters, shapes, laws that it passes, and the specs "
    "that use it. `zoo list` prints those of the plugins that you have installed, `zoo show NAME` "
    "one of them; the [cheatsheet](cheatsheet.md) has all equations on one page."
)
_KIND = re.compile(r"(components? of kind) (\w+)")
_PART = re.compile(r"\b([A-Z]\w+) \(keys: [^)]*\)")


def component_pages(data: SiteData) -> dict[str, str]:
    """Return the pages of components and kinds by path."""
    components = data.index.components()
    pages = {component_page(each): _component(each, data) for each in components}
    for kind in data.index.kinds:
        of_kind = [each for each in components if each.kind == kind]
        pages[f"components/{kind}.md"] = _kind(kind, of_kind)
    pages["components.md"] = _all(components, data.index.kinds)
    pages["parts.md"] = _parts(data)
    return pages


def _component(component: ComponentRecord, data: SiteData) -> str:
    page, name = component_page(component), f"{component.kind}/{component.name}"
    doc, cls = parse(component.doc), data.entries[name].cls
    kind = link(component.kind, f"components/{component.kind}.md", page)
    sections = [
        f"# {component.name}",
        f"{kind} · version {component.version} · plugin `{component.plugin}` · {source_link(cls)}",
        prose(doc.summary),
        *doc.body,
    ]
    if component.paper:
        sections.append(f"**Reference:** {paper_link(prose(component.paper))}")
    if component.serves:
        sections += ["## Replaces", f"{code(component.replaced())} of `{component.serves}`."]
    if component.parameters:
        rows = _parameters(component.parameters, doc.arguments(), page)
        sections += ["## Parameters", table(("parameter", "values", "default", ""), rows)]
    for title in ("Shapes", "Fields"):
        if title in doc.sections:
            sections += [f"## {title}", code_block("text", doc.sections[title])]
    sections += ["## Laws", *_laws(component, data.laws[name], page)]
    sections += _speed(data, name, page)
    sections += _accelerations(data, class_name(cls), page)
    specs = [link(f"`{spec}`", f"specs/{spec}.md", page) for spec in data.users.get(name, ())]
    if specs:
        sections += ["## Specs that use it", ", ".join(specs) + "."]
    return "\n\n".join(sections) + "\n"


def _parameters(
    parameters: Sequence[ParameterRecord], described: dict[str, str], page: str
) -> Iterator[tuple[str, ...]]:
    for each in parameters:
        text = prose(described.get(each.name, ""))
        yield f"`{each.name}`", _values(each.values, page), code(each.default), text


def _values(values: str, page: str) -> str:
    """Return the allowed values, with links to kinds and parts."""
    values = _PART.sub(lambda match: match[1] + " (a part)", prose(values).replace("\\|", "or"))

    def kind(match: re.Match[str]) -> str:
        return f"{match[1]} {link(match[2], f'components/{match[2]}.md', page)}"

    def part(match: re.Match[str]) -> str:
        return f"[{match[1]}]({relative('parts.md', page)})"

    return re.sub(r"\b([A-Z]\w+) \(a part\)", part, _KIND.sub(kind, values))


def _laws(component: ComponentRecord, outcomes: dict[str, Any], page: str) -> Iterator[str]:
    """Yield which laws were passed, and why others do not apply."""
    statements = link("the laws of the kind", f"components/{component.kind}.md#laws", page)
    passed = {law: count for law, count in outcomes.items() if isinstance(count, int)}
    most = max(passed.values(), default=1)
    tested = "one configuration" if most == 1 else f"up to {most} configurations"
    names = ", ".join(f"`{law}`" for law in passed)
    yield f"Passes {len(passed)} of {statements}, each on {tested}: {names}."
    others = [f"- `{law}`: {prose(why)}" for law, why in outcomes.items() if law not in passed]
    if others:
        yield "Not applicable, or not run where this page was measured:\n\n" + "\n".join(others)


def _speed(data: SiteData, name: str, page: str) -> Iterator[str]:
    """Yield a table of the measured benchmarks."""
    found = data.speeds.get(name)
    if not found:
        return
    rows = []
    for device, result in found:
        benchmark, peer, peer_time, time, ratio, *_ = next(iter(comparison_rows([result])))
        rows.append((f"`{benchmark}`", prose(device), prose(peer), peer_time, time, ratio))
    yield "## Speed"
    yield table(("benchmark", "device", "best peer", "peer's time", "our time", "ratio"), rows)
    yield f"{link('Performance', 'performance.md', page)} says how they are measured."


def _accelerations(data: SiteData, served: str, page: str) -> Iterator[str]:
    found = data.accelerations.get(served)
    if found:
        yield "## Accelerations"
        yield "\n".join(
            f"- {link(f'`{each.name}`', component_page(each), page)}: {prose(each.summary)}"
            for each in found
        )


def _kind(kind: str, components: Sequence[ComponentRecord]) -> str:
    page, doc = f"components/{kind}.md", parse(inspect.getdoc(KINDS[kind]) or "")
    rows = [
        (
            link(f"`{each.name}`", component_page(each), page),
            prose(each.summary),
            paper_link(prose(each.paper)),
        )
        for each in components
    ]
    laws = [(f"`{law.name}`", prose(law.statement)) for law in LAWS[kind]]
    sections = [
        f"# {kind}",
        prose(doc.summary),
        *doc.body,
        table(("name", "", "paper"), rows),
        "## Laws",
        _LAWS,
        table(("law", ""), laws),
        "## Interface",
        f"`zoo.plugin.{KINDS[kind].__name__}`, {source_link(KINDS[kind])}.",
    ]
    return "\n\n".join(sections) + "\n"


def _all(components: Sequence[ComponentRecord], kinds: Sequence[str]) -> str:
    sections = [
        "# Components",
        f"{len(components)} components of {len(kinds)} kinds. {_COMPONENTS}",
    ]
    for kind in kinds:
        doc = parse(inspect.getdoc(KINDS[kind]) or "")
        names = [
            link(f"`{each.name}`", component_page(each), "components.md")
            for each in components
            if each.kind == kind
        ]
        title = f"## [{kind}](components/{kind}.md)"
        sections += [title, prose(doc.summary), " ".join(names)]
    return "\n\n".join(sections) + "\n"


def _parts(data: SiteData) -> str:
    """Return the page of the classes that slots name, and of the sections of a spec."""
    sections = [
        "# Parts and sections",
        "The classes that a slot takes without a `type`, and the sections of a spec.",
    ]
    for part in data.index.parts:
        doc = parse(part.doc)
        sections += [f"## {part.class_name if part.used_by else part.name}", prose(doc.summary)]
        sections += doc.body
        if part.used_by:
            sections.append(f"Used by {', '.join(code(each) for each in part.used_by)}.")
        if part.parameters:
            rows = _parameters(part.parameters, doc.arguments(), "parts.md")
            sections.append(table(("key", "values", "default", ""), rows))
        if "Shapes" in doc.sections:
            sections.append(code_block("text", doc.sections["Shapes"]))
    return "\n\n".join(sections) + "\n"
