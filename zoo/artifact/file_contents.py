"""The contents of the files of an artifact: headers and tensors, hashed as they are written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from torch import Tensor

from zoo.artifact.header import FORMAT, identity
from zoo.artifact.layout import Layout, layout_tensors, tensor_bytes

_HASH_PLACEHOLDER = "0" * 64
"""Has the length of a hash, until the tensors have been written."""


class FileContents:
    """The tensors of each file, and the metadata of the first one."""

    def __init__(self, shards: Sequence[Mapping[str, Tensor]], metadata: Mapping[str, str]) -> None:
        self.shards, self.metadata = shards, metadata
        self.tables = [layout_tensors(shard) for shard in shards]
        names = (name for table in self.tables for name in table)
        self.hashes: dict[str, str] = dict.fromkeys(names, _HASH_PLACEHOLDER)

    @property
    def shard_of(self) -> dict[str, int]:
        """The index of the file of each tensor."""
        return {name: number for number, shard in enumerate(self.shards) for name in shard}

    def identity(self) -> str:
        """Return the identity of the model, from the hashes known so far."""
        return identity(self.metadata, self.hashes)

    def data_bytes(self, number: int) -> int:
        """Return the size of the tensors in one file."""
        return sum(stored.nbytes for stored in self.tables[number].values())

    def header(self, number: int, model_id: str) -> bytes:
        """Return the header of one file. `model_id` is the identity of the model, for shards."""
        table = self.tables[number]
        own = {"format": "pt", "zoo": FORMAT, **(self.metadata if number == 0 else {})}
        if len(self.shards) > 1:
            own |= {"shard": f"{number + 1}/{len(self.shards)}", "model": model_id}
        own |= {"hashes": json.dumps({name: self.hashes[name] for name in table})}
        layout = Layout(own, table)
        own["digest"] = layout.digest()
        return layout.encode()

    def write_stream(self, file: Path, tensors: Iterable[tuple[str, Tensor]]) -> None:
        """Write and hash the tensors of the only file as they are produced, in any order."""
        header = self.header(0, _HASH_PLACEHOLDER)
        with open(file, "wb") as out:
            out.write(header)
            for name, tensor in tensors:
                raw = tensor_bytes(tensor)
                self.hashes[name] = hashlib.sha256(raw).hexdigest()
                out.seek(len(header) + self.tables[0][name].begin)
                out.write(raw)
            out.seek(0)
            out.write(self.header(0, self.identity()))

    def write(self, files: Sequence[Path]) -> dict[str, object]:
        """Write and hash the tensors of each file. Return the metadata of the index.

        Headers are written twice: hashes have the length of their placeholder.
        """
        for number, file in enumerate(files):
            with open(file, "wb") as out:
                out.write(self.header(number, _HASH_PLACEHOLDER))
                for name in self.tables[number]:
                    raw = tensor_bytes(self.shards[number][name])
                    self.hashes[name] = hashlib.sha256(raw).hexdigest()
                    out.write(raw)
        model_id = self.identity()
        for number, file in enumerate(files):
            with open(file, "rb+") as patched:
                patched.write(self.header(number, model_id))
        total = sum(self.data_bytes(number) for number in range(len(files)))
        return {"total_size": total, "model": model_id}
