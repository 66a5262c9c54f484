"""Headers of safetensors files: strict parsing within limits, and serialisation.

Tensors are read by the `safetensors` library. The table in docs/architecture.md, "The artifact",
gives the reason for each part of this module.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

MAX_HEADER = 100_000_000
MAX_TENSORS = 100_000
MAX_NAME = 1_000
MAX_DIMENSIONS = 32
ALIGNMENT = 8

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

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A string; without an end, all that follows."""
MAX_LEVELS = 64
_ENTRY_KEYS = {"dtype", "shape", "data_offsets"}
_SIZE_TYPES = {int}  # not bool


class InvalidSafetensorsError(ValueError):
    """Bytes that are not a valid safetensors header. The message follows the name of the file."""


class StoredTensor(NamedTuple):
    """Dtype, shape and byte range of a tensor, relative to the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def nbytes(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class Layout:
    """The contents of the header of one file."""

    metadata: dict[str, str]
    tensors: dict[str, StoredTensor]

    def digest(self) -> str:
        """Return the sha256 of the header without its key `digest`."""
        metadata = {key: text for key, text in self.metadata.items() if key != "digest"}
        table = {n: [t.dtype, t.shape, t.begin, t.end] for n, t in self.tensors.items()}
        return hash_json([metadata, table])

    def encode(self) -> bytes:
        """Return the bytes of the header, with its length in front."""
        table: dict[str, Any] = {"__metadata__": self.metadata} if self.metadata else {}
        for name, stored in self.tensors.items():
            offsets = [stored.begin, stored.end]
            table[name] = {"dtype": stored.dtype, "shape": stored.shape, "data_offsets": offsets}
        text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % ALIGNMENT)
        if len(text) > MAX_HEADER:
            raise InvalidSafetensorsError(
                f"its header would have {len(text):,} bytes; at most {MAX_HEADER:,} are allowed"
            )
        return len(text).to_bytes(8, "little") + text


def hash_json(data: Any) -> str:
    """Return the sha256 of plain data, independent of the order of keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def parse_json(text: str, *, max_values: int) -> Any:
    """Parse JSON. Raise ValueError for duplicate keys and unpaired surrogates, for more than
    `max_values` values (before they are created), and for more than 64 levels."""
    if exceeds_values(text, max_values):
        raise InvalidSafetensorsError(f"it has more than {max_values:,} values")
    data = json.loads(text, object_pairs_hook=_reject_duplicates)
    _check_levels(data)
    if "\\u" in text:
        json.dumps(data, ensure_ascii=False).encode()  # raises for unpaired surrogates
    return data


def exceeds_values(text: str, max_values: int) -> bool:
    """Return whether JSON has more than `max_values` values, without creating them."""
    return _exceeds(text, commas=max_values, braces=max_values)


def tensor_bytes(tensor: Tensor) -> memoryview:
    """Return the bytes of a tensor, copied only if it is not on the CPU or not contiguous."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def layout_tensors(tensors: Mapping[str, Tensor]) -> dict[str, StoredTensor]:
    """Return a byte range for each tensor, sorted by item size, so that all are aligned."""
    table, end = {}, 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].itemsize, name)):
        tensor = tensors[name]
        if tensor.dtype not in DTYPE_NAMES:
            raise InvalidSafetensorsError(
                f"tensor {name} is {tensor.dtype}, which safetensors cannot store"
            )
        begin, end = end, end + tensor.numel() * tensor.itemsize
        table[name] = StoredTensor(DTYPE_NAMES[tensor.dtype], tuple(tensor.shape), begin, end)
    return table


def decode_header(header: bytes, data_bytes: int) -> Layout:
    """Parse a header. Its tensors must fill exactly the `data_bytes` after it, without gaps."""
    try:
        text = header.decode()
        if _exceeds(text, commas=16 * MAX_TENSORS, braces=MAX_TENSORS + 2):
            raise InvalidSafetensorsError(f"its header contains more than {MAX_TENSORS:,} tensors")
        table = parse_json(text, max_values=16 * MAX_TENSORS)
    except (ValueError, RecursionError) as error:
        own = isinstance(error, InvalidSafetensorsError)
        raise InvalidSafetensorsError(str(error) if own else "its header is not JSON") from None
    if not isinstance(table, dict):
        raise InvalidSafetensorsError("its header is not a JSON object")
    metadata = table.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(w, str) for w in metadata.values()):
        raise InvalidSafetensorsError("its metadata must map names to strings")
    tensors = {name: _parse_entry(name, entry) for name, entry in table.items()}
    end = 0
    for name, stored in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if stored.begin != end:
            raise InvalidSafetensorsError(f"there is a gap or an overlap before tensor {name}")
        end = stored.end
    if end != data_bytes:
        raise InvalidSafetensorsError(
            f"its tensors have {end:,} bytes, but {data_bytes:,} bytes follow the header"
        )
    return Layout(metadata, tensors)


def _exceeds(text: str, *, commas: int, braces: int) -> bool:
    """Return whether JSON has more commas or brackets outside of strings, without parsing it."""

    def too_many(text: str) -> bool:
        return text.count(",") + text.count("[") > commas or text.count("{") > braces

    if not too_many(text):
        return False
    # Each string starts with a quote that is not escaped.
    if text.count('"') - text.count('\\"') > 4 * commas:
        return True
    return too_many(_STRING.sub("", text))


def _check_levels(data: Any) -> None:
    level = [data] if type(data) is dict or type(data) is list else []  # faster than isinstance
    for _ in range(MAX_LEVELS):
        level = [
            value
            for node in level
            for value in (node.values() if type(node) is dict else node)
            if type(value) is dict or type(value) is list
        ]
        if not level:
            return
    raise InvalidSafetensorsError(f"it has more than {MAX_LEVELS} levels")


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        repeated = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InvalidSafetensorsError(f"the key {repeated[:60]!a} is repeated")
    return table


def _parse_entry(name: str, entry: Any) -> StoredTensor:
    if not name.isprintable() or len(name) > MAX_NAME:
        raise InvalidSafetensorsError(
            f"the tensor name {name[:40]!a} is not printable or is longer than {MAX_NAME:,}"
        )
    if not isinstance(entry, dict) or entry.keys() != _ENTRY_KEYS:
        raise InvalidSafetensorsError(
            f"tensor {name} must have exactly the keys dtype, shape and data_offsets"
        )
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise InvalidSafetensorsError(
            f"tensor {name} has an unsupported dtype: {str(dtype)[:20]!a}"
        )
    if not _is_size_list(shape) or len(shape) > MAX_DIMENSIONS:
        raise InvalidSafetensorsError(f"tensor {name} has an invalid shape")
    if not _is_size_list(offsets) or len(offsets) != 2:
        raise InvalidSafetensorsError(f"tensor {name} has invalid data_offsets")
    begin, end = offsets
    if end - begin != math.prod(shape) * DTYPES[dtype].itemsize:
        raise InvalidSafetensorsError(f"the data_offsets of tensor {name} do not match its shape")
    return StoredTensor(dtype, tuple(shape), begin, end)


def _is_size_list(values: Any) -> bool:
    if not isinstance(values, list) or not set(map(type, values)) <= _SIZE_TYPES:
        return False
    return not values or (min(values) >= 0 and max(values) < 2**48)
