"""Models of other libraries, imported at first use and cached as artifacts.

Its functions are those that the hook ``zoo_folder_importers`` asks for.

The artifact of a repository is in the repository's folder of the Hub's cache, named by its commit
and by the version of its importer; that of a local folder is in ``HF_HOME``, named by the times and
sizes of its files. Another version of the importer imports again and replaces the artifact. An
artifact that has another hash than when it was written is not used, and imported again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import constants

from zoo.about import version
from zoo.errors import HubError
from zoo.files import has_recorded_hash, lock_dir, os_error_message, record_hash, record_path
from zoo.hub.checkout import Checkout
from zoo.hub.other_library import imported_folder
from zoo.interfaces.importer import Importer
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo_exchange.import_plan import find_importer, plan_import
from zoo_exchange.importing import fetch_source, list_source_files as list_source_files
from zoo_exchange.source_files import read_config

_log = logging.getLogger("zoo.exchange")

_SOURCE_SUFFIXES = (".py", ".yaml", ".json")


def import_repository(checkout: Checkout, registry: ComponentRegistry | None = None) -> Path:
    """Return the artifact of a repository of another library; import it if it is not cached."""
    registry = registry or default_registry()
    key = _importer_key(find_importer(read_config(checkout.folder), registry), registry)
    target = imported_folder(checkout) / f"{key}.safetensors"

    origin = {"imported": checkout.repo, "commit": checkout.commit}
    options = checkout.options
    return _import_once(
        target,
        partial(fetch_source, checkout, registry=registry),
        origin,
        registry,
        force=options.force_download and not checkout.offline,
        skip_hash_check=options.skip_hash_check,
    )


def import_folder(
    folder: Path, registry: ComponentRegistry | None = None, *, skip_hash_check: bool = False
) -> Path:
    """Return the artifact of a folder of another library; import it if it is not cached."""
    registry = registry or default_registry()
    importer = find_importer(read_config(folder), registry)
    name = _hash(os.path.realpath(folder))
    key = _hash([_importer_key(importer, registry), *_file_states(folder)])
    target = Path(constants.HF_HOME) / "zoo" / "imported" / name / f"{key}.safetensors"
    origin = {"imported": folder.resolve().name}
    return _import_once(target, lambda: folder, origin, registry, skip_hash_check=skip_hash_check)


def _import_once(
    target: Path,
    source: Callable[[], Path],
    origin: Mapping[str, Any],
    registry: ComponentRegistry,
    *,
    force: bool = False,
    skip_hash_check: bool = False,
) -> Path:
    """Return `target`, imported from the folder that `source` returns if it is not intact.

    One process imports while others wait; artifacts of other versions are removed.
    """

    def is_cached() -> bool:
        return not force and bool(has_recorded_hash(target, skip_hash_check=skip_hash_check))

    if is_cached():
        return target
    folder = source()
    with contextlib.ExitStack() as stack:
        with _storing(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock_dir(target.parent))
        if not is_cached():
            _log.info("importing %s to %s", origin["imported"], target)
            plan = plan_import(folder, origin=origin, registry=registry)
            for note in plan.notes:
                _log.warning("%s: %s", origin["imported"], note)
            plan.write(target)
            with _storing(target.parent):
                record_hash(target)
            for other in target.parent.glob("*.safetensors"):
                if other != target:
                    other.unlink(missing_ok=True)
                    record_path(other).unlink(missing_ok=True)
    return target


@contextlib.contextmanager
def _storing(folder: Path) -> Iterator[None]:
    """Report an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise HubError(
            f"the imported model cannot be stored in {folder}: {os_error_message(error)}; set "
            "HF_HOME to use another directory, or import it with 'zoo import'"
        ) from None


def _importer_key(importer: Importer, registry: ComponentRegistry) -> str:
    """Return a hash of the versions of the zoo and of the importer, with its package's files."""
    owner = registry.owner_of(importer)
    packages = {cls.__module__.partition(".")[0] for cls in type(importer).__mro__}
    contents = {
        name: _package_contents(name) for name in sorted(packages - {"zoo", "abc", "builtins"})
    }
    provider = [owner.distribution, owner.version] if owner else []
    return _hash([version(), importer.name, provider, contents])


def _package_contents(name: str) -> list[list[str]]:
    """Return the name and hash of each file of a package or module."""
    module = sys.modules[name]
    roots = [Path(folder) for folder in getattr(module, "__path__", ())]
    files = [file for root in roots for file in sorted(root.rglob("*"))]
    files = [file for file in files if file.suffix in _SOURCE_SUFFIXES]
    if not roots and getattr(module, "__file__", None):
        files = [Path(str(module.__file__))]
    return [[file.name, hashlib.sha256(file.read_bytes()).hexdigest()] for file in files]


def _file_states(folder: Path) -> list[list[Any]]:
    """Return the path, size and times of the files that an import may read."""
    files = sorted(file for pattern in ("*", "*/*") for file in folder.glob(pattern))
    states = [(file, file.stat()) for file in files if file.is_file()]
    return [
        [str(f.relative_to(folder)), s.st_size, s.st_mtime_ns, s.st_ctime_ns] for f, s in states
    ]


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:32]
