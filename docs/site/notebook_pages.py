"""Pages of the notebooks in docs/notebooks, without outputs."""

import json
from pathlib import Path

from page_text import code_block, table
from site_data import DOCS, REPOSITORY

NOTEBOOKS = DOCS / "notebooks"


def notebook_pages() -> dict[str, str]:
    """Return the pages of notebooks by path."""
    files = sorted(NOTEBOOKS.glob("*.ipynb"))
    pages = {f"notebooks/{file.stem}.md": _page(file) for file in files}
    rows = [
        (f"[{_title(file)}]({file.stem}.md)", f"`docs/notebooks/{file.name}`") for file in files
    ]
    pages["notebooks/index.md"] = (
        "# Notebooks\n\nShort notebooks, executed by the tests. They are stored without outputs; "
        "open them in Jupyter or an editor to run them.\n\n"
        + table(("notebook", "file"), rows)
        + "\n"
    )
    return pages


def _cells(file: Path) -> list[tuple[str, str]]:
    notebook = json.loads(file.read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def _title(file: Path) -> str:
    return _cells(file)[0][1].splitlines()[0].removeprefix("# ")


def _page(file: Path) -> str:
    parts = [
        text if kind == "markdown" else code_block("python", text) for kind, text in _cells(file)
    ]
    path = f"docs/notebooks/{file.name}"
    parts.insert(1, f"Notebook: [`{path}`]({REPOSITORY}{path})")
    return "\n\n".join(parts) + "\n"
