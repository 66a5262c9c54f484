"""A page for each spec and each shipped model, and the cheatsheet."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from docstrings import parse
from page_text import code_block, link, math_block, prose, table
from site_data import REPOSITORY, ROOT, SiteData, component_page, paper_link

from zoo.cli.output import format_bytes

PICTURES = "pictures"
_CHEATSHEET = (
    "The equation and the paper of every component, by kind. Accelerations compute the equations "
    "of the classes that they serve; datasets have none."
)


def spec_pages(data: SiteData) -> dict[str, str]:
    """Return the pages of specs by path."""
    published = {model.data["name"]: model.data for model in data.index.models}
    files = {name: rows[0].path for name, rows in data.index.specs.items()}
    pages = {
        f"specs/{name}.md": _spec(name, files[name], data, published.get(name, {}))
        for name in files
    }
    rows = [
        (
            link(f"`{name}`", f"specs/{name}.md", "specs/index.md"),
            prose(_description(path)),
            f"{data.trees[name]['parameters']:,}",
        )
        for name, path in sorted(files.items())
    ]
    text = (
        "# Specs\n\nEach of these is a name that `zoo check`, `zoo train` and `zoo.compose` accept,"
        " and a base for `extends` in a spec of your own ([how to write one](../specs.md)). "
        "`zoo show NAME` prints the text of a spec.\n\n"
    )
    pages["specs/index.md"] = text + table(("spec", "", "parameters"), rows) + "\n"
    return pages


def _description(path: Path) -> str:
    return str(yaml.safe_load(path.read_text(encoding="utf-8")).get("description", ""))


def _spec(name: str, path: Path, data: SiteData, published: dict[str, Any]) -> str:
    tree, text = data.trees[name], path.read_text(encoding="utf-8")
    page = f"specs/{name}.md"
    file = path.resolve().relative_to(ROOT).as_posix()
    sections = [
        f"# {name}",
        prose(_description(path)),
        f"{_size(tree)} · [`{file}`]({REPOSITORY}{file})",
    ]
    if published:
        sections.append(f"**Paper:** {paper_link(prose(published['paper']))}")
    sections += ["## Spec", code_block("yaml", text)]
    sections += ["## Parts", "What `zoo check` prints. B batch, S source length, T other lengths."]
    sections.append(code_block("text", _tree(tree["parts"])))
    used = [data.entries[each] for each in tree["uses"] if each in data.entries]
    links = [f"{each.kind} {link(f'`{each.name}`', component_page(each), page)}" for each in used]
    sections += ["## Components", ", ".join(links) + "."]
    return "\n\n".join(sections) + "\n"


def _size(tree: dict[str, Any]) -> str:
    return f"{tree['parameters']:,} parameters, {format_bytes(tree['bytes'])}"


def _tree(rows: Sequence[Sequence[Any]]) -> str:
    """Return the rows of a tree in columns."""
    cells = [(name or "model", kind, shape, f"{n:,}" if n else "") for name, kind, shape, n in rows]
    wide = [max(len(row[column]) for row in cells) for column in range(4)]
    return "\n".join(
        f"{row[0]:{wide[0]}}  {row[1]:{wide[1]}}  {row[2]:{wide[2]}}  {row[3]:>{wide[3]}}".rstrip()
        for row in cells
    )


def model_pages(data: SiteData) -> dict[str, str]:
    """Return the pages of shipped models by path; their diagrams too."""
    shipped = [model.data for model in data.index.models if model.data["shipped"]]
    pages = {}
    for model in shipped:
        card = data.cards[model["name"]]
        pages[f"models/{model['name']}.md"] = _model(model, card["card"])
        pages[f"models/{model['name']}.svg"] = card["diagram"]
    rows = [
        (
            link(f"`{model['name']}`", f"models/{model['name']}.md", "models/index.md"),
            prose(_results(model)),
            paper_link(prose(model["paper"])),
        )
        for model in shipped
    ]
    pages["models/index.md"] = (
        "# Trained models\n\nThese models are in the repository and in the distribution "
        "`attention-zoo-weights`: `zoo.load(NAME)` downloads nothing. Other models are loaded from "
        "the [Hub](../hub.md).\n\n" + table(("model", "test result", "paper"), rows) + "\n"
    )
    return pages


def _results(model: dict[str, Any]) -> str:
    return ", ".join(
        f"{each.get('label') or each['metric']} {each['value']}" for each in model["results"]
    )


def _model(model: dict[str, Any], card: str) -> str:
    name, shipped = model["name"], model["shipped"]
    _, _, body = card.removeprefix("---\n").partition("\n---\n")
    body = re.sub(r"<!--.*?-->\s*", "", body).strip()
    body = body.replace("(tree.svg)", f"({name}.svg)")
    recipe = shipped["recipe"]
    size = f"{format_bytes(shipped['bytes'])}, {shipped['dtype']}"
    origin = f"trained by `zoo reproduce {recipe}` ([result](../reproductions.md#{recipe}))"
    sections = [
        f"# {name}",
        f"{size}; {origin}. What follows the picture is its model card.",
        f"![What {name} attends to](../{PICTURES}/attention-{name}.png)",
        body.partition("\n")[2].strip(),
        "## Training data",
        table(
            ("data set", "licence", "attribution"),
            [
                (_data_link(each), prose(each["licence"]), prose(each["attribution"]))
                for each in shipped["data"]
            ],
        ),
    ]
    return "\n\n".join(sections) + "\n"


def _data_link(row: dict[str, str]) -> str:
    return f"[{row['name']}]({row['url']})"


def cheatsheet(data: SiteData) -> str:
    """Return the page with the equation and paper of every component."""
    sections = [
        "# Cheatsheet",
        _CHEATSHEET,
    ]
    for kind in data.index.kinds:
        found = list(_equations(data, kind))
        if found:
            sections += [f"## {kind}", *found]
    return "\n\n".join(sections) + "\n"


def _equations(data: SiteData, kind: str) -> Iterator[str]:
    for component in data.index.components(kind):
        doc = parse(component.doc)
        if not doc.equations:
            continue
        paper = paper_link(prose(component.paper))
        name = link(f"`{component.name}`", component_page(component), "cheatsheet.md")
        yield f"{name} {paper}".rstrip()
        for equation in doc.equations:
            yield math_block(equation)


def all_equations(data: SiteData) -> dict[str, list[str]]:
    """Return the equations of components and parts by name."""
    rows = [(f"{each.kind}/{each.name}", each.doc) for each in data.index.components()]
    rows += [(f"parts/{each.name}", each.doc) for each in data.index.parts]
    return {name: equations for name, doc in rows if (equations := parse(doc).equations)}
