"""The files of data sets that a reproduction needs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from zoo.errors import DataError, ZooError
from zoo.files import hash_file

VARIABLE = "ZOO_DATA"
"""The environment variable with the folder of all data sets."""
DEFAULT = Path("data")
"""The folder of all data sets if the variable is not set."""
SUMS = "SHA256SUMS"
_SHOWN = 5


def set_data_folder(folder: str | os.PathLike[str] | None = None) -> None:
    """Set the environment variable, which specs use in paths, to a folder.

    Args:
        folder: default: the variable as it is; if it is not set, `DEFAULT` if that exists.
    """
    if folder is not None:
        os.environ[VARIABLE] = os.fspath(folder)
    elif VARIABLE not in os.environ and DEFAULT.is_dir():
        os.environ[VARIABLE] = str(DEFAULT.resolve())


def data_folder() -> Path:
    """Return the folder of the data sets; raise ZooError if it is not set or missing."""
    value = os.environ.get(VARIABLE)
    if not value:
        raise ZooError(
            f"the environment variable {VARIABLE} is not set; set it to the folder that contains "
            "the folders of the data sets, or pass --data FOLDER"
        )
    folder = Path(value)
    if not folder.is_dir():
        raise ZooError(f"{VARIABLE} is '{value}', which is not a folder")
    return folder


def find_missing(names: Sequence[str]) -> list[str]:
    """Return the data sets that have no folder; all, if ``ZOO_DATA`` is not set."""
    try:
        folder = data_folder()
    except ZooError:
        return list(names)
    return [name for name in names if not (folder / name).is_dir()]


def check_data(names: Sequence[str]) -> dict[str, str]:
    """Compare the files of data sets with their checksums, and return the checksums by file.

    The file ``SHA256SUMS`` is in the folder of the data set, or in the folder of all data sets.

    Raises:
        DataError: if a folder, a file or the checksums are missing, or a file has another content.
    """
    found: dict[str, str] = {}
    for name in names:
        root = data_folder()
        folder = root / name
        if not folder.is_dir():
            raise DataError(
                f"no folder of the data set '{name}'; {VARIABLE} is {root}, which has "
                f"{_list_folders(root)}",
                str(folder),
            )
        sums = read_sums(folder)
        problems = [text for file, sha in sums.items() if (text := _problem(folder / file, sha))]
        if problems:
            more = f" and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            raise DataError(
                f"{'; '.join(problems[:_SHOWN])}{more}; copy the data set again", str(folder)
            )
        found |= {f"{name}/{file}": sha for file, sha in sums.items()}
    return found


def read_sums(folder: Path) -> Mapping[str, str]:
    """Return the checksums of the files in a folder, by their names."""
    for file, prefix in ((folder / SUMS, ""), (folder.parent / SUMS, f"{folder.name}/")):
        if not file.is_file():
            continue
        rows = [line.split(maxsplit=1) for line in file.read_text(encoding="utf-8").splitlines()]
        named = {row[1].lstrip("*").removeprefix("./"): row[0] for row in rows if len(row) == 2}
        sums = {
            name.removeprefix(prefix): sha for name, sha in named.items() if name.startswith(prefix)
        }
        if sums:
            return sums
    raise DataError(
        f"no {SUMS} lists its files; create one with 'sha256sum *' in the folder", str(folder)
    )


def _problem(file: Path, expected: str) -> str | None:
    """Return what is wrong with a file, or None."""
    if not file.is_file():
        return f"{file.name} is missing"
    return (
        None
        if hash_file(file) == expected
        else f"{file.name} has another content than {SUMS} lists"
    )


def _list_folders(root: Path) -> str:
    names = sorted(path.name for path in root.iterdir() if path.is_dir())
    return ", ".join(names) or "no folders"
