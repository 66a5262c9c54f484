"""Write all pages of the site as Markdown: guides as they are, the others from code and results.

    python docs/site/write_pages.py FOLDER

The pages are plain Markdown with ``math`` blocks; ``navigation.json`` says in which order they are
listed. Any generator of sites can build them; `build_site.py` uses Sphinx.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from completeness import check_complete, check_facts
from component_pages import component_pages
from model_pages import cheatsheet, model_pages, spec_pages
from navigation import contents, guides
from notebook_pages import notebook_pages
from reference_pages import api_pages, command_pages, hook_pages
from site_data import DOCS, REPOSITORY, SiteData

NAVIGATION = "navigation.json"
PICTURES = (".png", ".svg")
_OUTSIDE = re.compile(r"\]\(\.\./([^)\s]+)\)")
_TITLE = re.compile(r"^# (.*)$", re.M)


def main() -> None:
    """Write the pages to the folder that the command names."""
    os.environ["ZOO_PLUGINS"] = "none"  # other installed plugins have documentation of their own
    folder = Path(sys.argv[1])
    print(f"wrote {len(write_pages(folder))} files to {folder}")


def all_pages(data: SiteData) -> dict[str, str]:
    """Return the text of every page by path, without the guides' pictures."""
    pages = {file.name: _guide(file) for file in sorted(DOCS.glob("*.md"))}
    pages |= component_pages(data) | spec_pages(data) | model_pages(data)
    pages |= command_pages(data) | hook_pages(data) | api_pages() | notebook_pages()
    pages["cheatsheet.md"] = cheatsheet(data)
    pages["index.md"] = _index(pages)
    return pages


def write_pages(folder: Path) -> dict[str, str]:
    """Write all pages, pictures and the navigation to a folder; return the pages."""
    shutil.rmtree(folder, ignore_errors=True)
    data = SiteData()
    check_facts(data)
    pages = all_pages(data)
    check_complete(pages, data)
    for path, text in pages.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for file in sorted(DOCS.rglob("*")):
        inside = file.relative_to(DOCS)
        if file.suffix in PICTURES and inside.parts[0] != "site":
            (folder / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / inside)
    (folder / NAVIGATION).write_text(json.dumps(navigation(pages), indent=1), encoding="utf-8")
    return pages


def navigation(pages: Mapping[str, str]) -> dict[str, Any]:
    """Return the order of the pages, and their titles, by path without suffix."""
    titles = {
        path.removesuffix(".md"): _TITLE.search(text)[1]
        for path, text in pages.items()
        if path.endswith(".md")
    }
    return {"contents": contents(set(titles)), "titles": titles}


def _guide(file: Path) -> str:
    """Return the text of a guide; links to files outside of docs/ lead to the repository."""
    return _OUTSIDE.sub(rf"]({REPOSITORY}\1)", file.read_text(encoding="utf-8"))


def _index(pages: dict[str, str]) -> str:
    """Return the first page: what the zoo is, and the guides by subject."""
    sections = [(Path(__file__).parent / "index.md").read_text(encoding="utf-8").rstrip()]
    for caption, names in guides({path.removesuffix(".md") for path in pages}).items():
        links = [f"[{_TITLE.search(pages[f'{name}.md'])[1]}]({name}.md)" for name in names]
        sections += [f"## {caption}", " · ".join(links)]
    return "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    main()
