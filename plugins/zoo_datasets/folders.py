"""Files in folders, and tables that name them."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from zoo import DataError
from zoo.plugin import TextLines


def list_classes(folder: Path, suffixes: Sequence[str]) -> list[tuple[str, str]]:
    """Return path and class of each file in ``FOLDER/CLASS/`` and the folders in it, sorted.

    The result is empty if there are only files, without folders of classes.

    Raises:
        DataError: if a folder of a class has no such file, or a file is not in one.
    """
    classes = [entry for entry in _entries(folder) if entry.is_dir()]
    found = [(path, each.name) for each in classes for path in _walk(Path(each.path), suffixes)]
    if not found:
        return []
    if loose := list_files(folder, suffixes):
        raise DataError("the file is not in the folder of a class; move or remove it", loose[0])
    used = {name for _, name in found}
    for each in classes:
        if each.name not in used:
            named = ", ".join(suffixes)
            raise DataError(f"the folder of a class has no file {named}; remove it", each.path)
    return found


def _walk(folder: Path, suffixes: Sequence[str]) -> list[str]:
    """Return the paths of the files in a folder and in the folders in it."""
    # Links to folders are not followed here: one may lead back.
    inner = [Path(entry.path) for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]
    return sorted(
        [*list_files(folder, suffixes), *(path for each in inner for path in _walk(each, suffixes))]
    )


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


def read_rows(lines: TextLines, exists: Callable[[str], bool]) -> list[tuple[str, str]]:
    """Return the rows of a file with lines ``name<TAB>label or text``.

    Args:
        exists: whether there is a file, or an array, of this name.

    Raises:
        DataError: if a line has another form or names something that does not exist.
    """
    rows = []
    for index, line in enumerate(lines):
        name, _, target = line.partition("\t")
        name, target = name.strip(), target.strip()
        if not name or not target:
            raise DataError(
                "expected a name, a tab and its label or text, neither of them empty",
                lines.origin(index),
            )
        if not exists(name):
            raise DataError(f"'{name}' does not exist", lines.origin(index))
        rows.append((name, target))
    if not rows:
        raise DataError("the file has no lines", str(lines.path))
    return rows


def read_paths(labels: str, folder: Path) -> list[tuple[str, str]]:
    """Return path and label or text of the files in a folder that a file names; see `read_rows`."""
    rows = read_rows(TextLines(labels), lambda name: (folder / name).is_file())
    return [(str(folder / name), target) for name, target in rows]
