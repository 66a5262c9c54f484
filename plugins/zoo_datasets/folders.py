"""Files in folders, and tables that name them."""

import os
from collections.abc import Sequence
from pathlib import Path

from zoo import DataError
from zoo.plugin import TextLines


def list_classes(folder: Path, suffixes: Sequence[str]) -> list[tuple[str, str]]:
    """Return path and class of each file in ``FOLDER/CLASS/``, sorted."""
    return [
        (path, inner.name)
        for inner in (folder / entry.name for entry in _entries(folder) if entry.is_dir())
        for path in list_files(inner, suffixes)
    ]


def list_files(folder: Path, suffixes: Sequence[str]) -> list[str]:
    """Return the paths of the files in a folder that have one of the suffixes, sorted by name."""
    return [
        entry.path
        for entry in _entries(folder)
        if entry.name.lower().endswith(tuple(suffixes)) and entry.is_file()
    ]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            visible = [entry for entry in entries if not entry.name.startswith(".")]
    except FileNotFoundError:
        raise DataError("no such folder", str(folder)) from None
    except NotADirectoryError:
        raise DataError("it is not a folder", str(folder)) from None
    return sorted(visible, key=lambda entry: entry.name)


def read_rows(lines: TextLines, folder: Path, columns: int) -> list[list[str]]:
    """Return the rows of a tab-separated file whose first column names files in a folder.

    Raises:
        DataError: if a line has fewer than ``columns`` columns, a name occurs outside of the
            folder, or a file does not exist.
    """
    rows = []
    for index, line in enumerate(lines):
        cells = [cell.strip() for cell in line.split("\t", columns - 1)]
        if len(cells) < columns or not all(cells):
            raise DataError(
                f"expected {columns} columns, separated by tabs: the name of a file, then its "
                "label or text",
                lines.origin(index),
            )
        if not (folder / cells[0]).is_file():
            raise DataError(f"{folder / cells[0]} does not exist", lines.origin(index))
        rows.append(cells)
    if not rows:
        raise DataError("the file has no lines", str(lines.path))
    return rows
