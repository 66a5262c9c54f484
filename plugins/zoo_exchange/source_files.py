"""Files of a model to import: config, safetensors files, shards. Nothing in them is executed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zoo.artifact.checkpoint import open_tensors
from zoo.errors import ZooError
from zoo.hub.other_library import read_json
from zoo.interfaces.tensors import TensorReader
from zoo_exchange.unreadable_files import reject_unreadable, reject_unreadable_folder

_SINGLE_FILE, _INDEX = "model.safetensors", "model.safetensors.index.json"


def read_config(folder: Path) -> dict[str, Any]:
    """Return the content of ``config.json`` in a folder."""
    if not folder.is_dir():
        reject_unreadable(folder)
        raise ZooError(
            f"{folder} is a single file without a config; set --spec and --map, or import a "
            "folder with a config.json"
        )
    file = folder / "config.json"
    if (folder / "adapter_config.json").is_file() and not file.exists():
        raise ZooError(
            f"{folder} is an adapter of peft, without the weights of its model; import it with "
            f"'zoo import {folder} --base MODEL -o adapter.safetensors'"
        )
    if not file.exists():
        if not any(folder.glob("*.safetensors")):
            reject_unreadable_folder(folder)
        raise ZooError(f"{folder} has no config.json; set --spec and --map")
    config = read_json(file)
    if not isinstance(config, dict):
        raise ZooError(f"{file} should contain a JSON object, but has {type(config).__name__}")
    return config


def find_weight_files(path: Path) -> list[Path]:
    """Return the safetensors files of a model, one or several shards."""
    if not path.is_dir():
        reject_unreadable(path)
        return [path]
    if (path / _SINGLE_FILE).is_file():
        return [path / _SINGLE_FILE]
    if (path / _INDEX).is_file():
        return _list_shards(path)
    reject_unreadable_folder(path)
    raise ZooError(f"{path} contains neither {_SINGLE_FILE} nor {_INDEX}")


def open_weights(path: Path, folders: Sequence[str] = ()) -> TensorReader:
    """Return a reader of the tensors of a model.

    Args:
        path: a safetensors file or a folder.
        folders: subfolders with further weights, whose tensors are named ``FOLDER/NAME``.
    """
    readers = {"": open_tensors(find_weight_files(path))}
    for folder in folders:
        if Path(folder).name != folder:
            raise ZooError(f"{folder!r} is not the name of a folder in {path}")
        readers[f"{folder}/"] = open_tensors(find_weight_files(path / folder))
    if len(readers) == 1:
        return readers[""]
    owners = {prefix + name: prefix for prefix, one in readers.items() for name in one.metas}
    metas = {
        name: readers[prefix].metas[name.removeprefix(prefix)] for name, prefix in owners.items()
    }
    return TensorReader(
        metas, lambda name: readers[owners[name]].read(name.removeprefix(owners[name]))
    )


def _list_shards(folder: Path) -> list[Path]:
    index = folder / _INDEX
    content = read_json(index)
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict):
        raise ZooError(f"{index} should map tensor names to files under 'weight_map'")
    for name in weight_map.values():
        if (
            not isinstance(name, str)
            or Path(name).name != name
            or not name.endswith(".safetensors")
        ):
            raise ZooError(f"{index}: {name!r} is not the name of a safetensors file in the folder")
    shards = [folder / name for name in sorted(set(weight_map.values()))]
    for shard in shards:
        if not shard.is_file():
            raise ZooError(f"{index}: {shard.name} does not exist")
    return shards
