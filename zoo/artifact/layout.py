"""The bytes of a safetensors file: a header of bounded size, then tensors without a gap.

Read here rather than by the library, which accepts duplicate names and takes many seconds for a
header of many tensors, and which would open the file a second time after it was checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

MAX_HEADER = 100_000_000
MAX_TENSORS = 100_000
MAX_NAME = 1_000
MAX_DIMENSIONS = 32
ALIGNMENT = 8

_PREPARSE_LIMIT = 1_000_000
"""A header of so many bytes is parsed at once; a longer one is first asked how much it lists."""

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "C64": torch.complex64,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class InvalidSafetensorsError(ValueError):
    """Bytes that are no safetensors header, in words that follow the file's name."""


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies, counted from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Layout:
    """What the header of one file says."""

    metadata: dict[str, str]
    tensors: dict[str, StoredTensor]

    def digest(self) -> str:
        """A hash of everything the header says, but for the digest in it."""
        words = {key: word for key, word in self.metadata.items() if key != "digest"}
        table = {n: [t.dtype, t.shape, t.begin, t.end] for n, t in self.tensors.items()}
        return hash_json([words, table])

    def encode(self) -> bytes:
        """The header as it stands in a file, its length before it."""
        table: dict[str, Any] = {"__metadata__": self.metadata} if self.metadata else {}
        for name, stored in self.tensors.items():
            offsets = [stored.begin, stored.end]
            table[name] = {"dtype": stored.dtype, "shape": stored.shape, "data_offsets": offsets}
        text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % ALIGNMENT)
        if len(text) > MAX_HEADER:
            raise InvalidSafetensorsError(
                f"its header would have {len(text):,} bytes, more than {MAX_HEADER:,}"
            )
        return len(text).to_bytes(8, "little") + text


def hash_json(data: Any) -> str:
    """The sha256 of plain data, whatever the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def parse_json(text: str) -> Any:
    """JSON that says everything once and can be printed; ValueError otherwise."""
    data = json.loads(text, object_pairs_hook=_reject_duplicates)
    if "\\u" in text:
        json.dumps(data, ensure_ascii=False).encode()  # refuses half characters
    return data


def layout_tensors(tensors: Mapping[str, Tensor]) -> dict[str, StoredTensor]:
    """A place for each tensor, the widest numbers first, so that all are aligned."""
    table, at = {}, 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].itemsize, name)):
        tensor = tensors[name]
        if tensor.dtype not in DTYPE_NAMES:
            raise InvalidSafetensorsError(
                f"no safetensors file can hold {name}, which is {tensor.dtype}"
            )
        size = tensor.numel() * tensor.itemsize
        table[name] = StoredTensor(DTYPE_NAMES[tensor.dtype], tuple(tensor.shape), at, at + size)
        at += size
    return table


def decode_header(header: bytes, data_bytes: int) -> Layout:
    """The layout a header describes, if it fills exactly the room behind it."""
    bare = _STRING.sub(b"", header) if len(header) > _PREPARSE_LIMIT else b""
    if bare.count(b"{") > MAX_TENSORS + 2 or bare.count(b",") > 16 * MAX_TENSORS:
        raise InvalidSafetensorsError(f"its header lists more than {MAX_TENSORS:,} tensors")
    try:
        table = parse_json(header.decode())
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, InvalidSafetensorsError) else "its header is no JSON"
        raise InvalidSafetensorsError(why) from None
    if not isinstance(table, dict):
        raise InvalidSafetensorsError("its header is no table")
    metadata = table.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(w, str) for w in metadata.values()):
        raise InvalidSafetensorsError("its metadata is not text by name")
    tensors = {name: _parse_entry(name, entry) for name, entry in table.items()}
    at = 0
    for name, stored in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if stored.begin != at:
            raise InvalidSafetensorsError(f"there is a gap or an overlap before tensor {name}")
        at = stored.end
    if at != data_bytes:
        raise InvalidSafetensorsError(
            f"its tensors have {at:,} bytes, but {data_bytes:,} bytes follow the header"
        )
    return Layout(metadata, tensors)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise InvalidSafetensorsError("its header says something twice")
    return table


def _parse_entry(name: str, entry: Any) -> StoredTensor:
    if not name.isprintable() or len(name) > MAX_NAME:
        raise InvalidSafetensorsError(
            f"a tensor has the name {name[:40]!a}, which cannot be printed"
        )
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise InvalidSafetensorsError(f"tensor {name} is not described as safetensors does")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise InvalidSafetensorsError(f"tensor {name} has an unknown dtype")
    if not _is_size_list(shape) or len(shape) > MAX_DIMENSIONS:
        raise InvalidSafetensorsError(f"tensor {name} has no proper shape")
    if not _is_size_list(offsets) or len(offsets) != 2:
        raise InvalidSafetensorsError(f"tensor {name} has no proper place")
    begin, end = offsets
    if end - begin != math.prod(shape) * DTYPES[dtype].itemsize:
        raise InvalidSafetensorsError(f"the place of tensor {name} does not fit its shape")
    return StoredTensor(dtype, tuple(shape), begin, end)


def _is_size_list(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**48 for v in values)
