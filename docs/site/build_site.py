"""Build the documentation: `python docs/site/build_site.py [FOLDER]`, default build/site.

Writes the pages as Markdown to FOLDER/pages and the site to FOLDER/html; open
FOLDER/html/index.html in a browser. README.md here says why no larger generator is used.
"""

import html
import json
import os
import shutil
import sys
from pathlib import Path
from string import Template

from completeness import MissingPages
from html_body import Body, BodyRenderer, broken_links
from search_index import search_script
from sidebar import Sidebar, outline
from write_pages import NAVIGATION, write_pages

from zoo.about import version

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "site"
KATEX = ROOT / "plugins" / "zoo_ui" / "static" / "katex"
REPOSITORY = "https://github.com/attention-zoo/attention-zoo"


class BrokenLinks(Exception):
    """Raised for pages that link to something that does not exist."""


def build(folder: Path) -> Path:
    """Write the pages and build the site; return its folder."""
    write_pages(folder / "pages")
    return build_html(folder / "pages", folder / "html")


def build_html(pages: Path, site: Path) -> Path:
    """Build the site from a folder of Markdown pages with pictures and a navigation."""
    files = {file.relative_to(pages).as_posix() for file in pages.rglob("*") if file.is_file()}
    texts = sorted(path for path in files if path.endswith(".md"))
    renderer = BodyRenderer()
    bodies = {path: renderer.render((pages / path).read_text(encoding="utf-8")) for path in texts}
    problems = broken_links(bodies, files)
    if problems:
        raise BrokenLinks("\n".join(problems))
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(HERE / "assets", site / "assets")
    shutil.copytree(KATEX, site / "assets" / "katex")
    for path in files - set(texts) - {NAVIGATION}:
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pages / path, site / path)
    sidebar = Sidebar(**json.loads((pages / NAVIGATION).read_text(encoding="utf-8")))
    template = Template((HERE / "template.html").read_text(encoding="utf-8"))
    for path, body in bodies.items():
        file = (site / path).with_suffix(".html")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_page(path.removesuffix(".md"), body, sidebar, template), encoding="utf-8")
    script = search_script(bodies, sidebar.titles)
    (site / "assets" / "search-index.js").write_text(script, encoding="utf-8")
    return site


def _page(name: str, body: Body, sidebar: Sidebar, template: Template) -> str:
    title = sidebar.titles[name]
    return template.substitute(
        title=html.escape(title if name == "index" else f"{title} · The zoo"),
        summary=html.escape(body.summary[:300]),
        top="../" * name.count("/"),
        sidebar=sidebar.render(name),
        breadcrumbs=sidebar.breadcrumbs(name),
        body=body.html,
        neighbours=sidebar.neighbours(name),
        outline=outline(body.headings),
        version=version(),
        repository=REPOSITORY,
    )


def main() -> None:
    """Build the site in the folder that the command names."""
    os.environ["ZOO_PLUGINS"] = "none"  # other installed plugins have documentation of their own
    site = build(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    print(f"open {site / 'index.html'}")


if __name__ == "__main__":
    try:
        main()
    except (BrokenLinks, MissingPages) as error:
        sys.exit(str(error))
