"""`zoo info`: show the header of a model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from zoo.cli.output import JsonOption, ModelArgument, format_bytes, print_json, print_rows
from zoo.cli.verbosity import VerboseOption
from zoo.errors import one_line, truncate

if TYPE_CHECKING:
    from zoo.artifact import Header

EXAMPLE = "zoo info model.safetensors"
_MAX_SHOWN = 5_000
_MAX_CHARS = 10_000
_OMITTED = "more values are not shown; use --json"


def command(
    model: ModelArgument, as_json: JsonOption = False, verbose: VerboseOption = False
) -> None:
    """Show the spec, providers, provenance, hashes, probe and sizes of a model.

    Weights are not loaded. For a model on the Hub, only the header is downloaded. --verbose prints
    the names of the tensors that an imported model had.
    """
    from zoo.hub.models import read_header

    header = read_header(model)
    if as_json:
        print_json(header.as_json())
    else:
        _print(header, verbose=verbose)


def _print(header: Header, *, verbose: bool) -> None:
    import yaml

    elements = sum(math.prod(shape) for _, shape in header.tensors.values())
    sizes = f"{elements:,} elements, {', '.join(header.dtypes)}, {format_bytes(header.bytes)}"
    print(f"{header.path}: {len(header.tensors)} tensors, {sizes}")
    if len(header.files) > 1:
        shards = (f"{name} ({format_bytes(size)})" for name, size in header.files)
        print(f"shards: {', '.join(shards)}")
    print(f"format: {header.format}")
    print(f"hashes: {_describe_hashes(header)}")
    print(f"probe: {_describe_probe(header.probe)}")
    if header.base is not None:
        print(f"base: {_describe_base(header.base)}")
    print(f"tokenizer: {one_line(truncate(', '.join(sorted(header.tokenizer)))) or 'none'}")
    for base in _lineage(header.provenance):
        print(f"trained from: {one_line(truncate(base))}")
    print()
    spec = {"spec": _shorten(header.spec, [_MAX_SHOWN])}
    print(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True))
    print("providers:")
    columns = ("kind", "component", "version", "plugin", "distribution")
    print_rows(columns, map(_provider_cells, header.providers), no_wrap=columns)
    print()
    provenance = header.provenance if verbose else _without_originals(header.provenance)
    shown = {"provenance": _shorten(provenance, [_MAX_SHOWN])}
    print(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True))


def _without_originals(provenance: dict[str, Any]) -> dict[str, Any]:
    """Return the provenance with the number of the tensors of an imported model, for exports."""
    originals = provenance.get("originals")
    if not isinstance(originals, dict):
        return provenance
    counts = {
        key: f"{len(value):,} entries (--verbose prints them)"
        for key, value in originals.items()
        if isinstance(value, (dict, list)) and value
    }
    return {**provenance, "originals": counts}


def _lineage(provenance: dict[str, Any]) -> Iterator[str]:
    """Yield the model that a model was trained from, then the one before it, as recorded."""
    base = provenance.get("base")
    while isinstance(base, dict):
        commit = f" at commit {base['commit']}" if base.get("commit") else ""
        yield f"{base.get('name')}{commit}, model hash {base.get('sha256')}"
        imported = base.get("imported")
        if isinstance(imported, dict):
            yield f"{imported.get('imported')}, imported"
        base = base.get("base")


def _provider_cells(row: dict[str, Any]) -> tuple[str, ...]:
    distribution = f"{row['distribution']} {row['distribution_version']}"
    return (row["kind"], row["name"], str(row["version"]), row["plugin"], distribution)


def _shorten(data: Any, left: list[int]) -> Any:
    """Return the data without values after the first `left[0]`, and with short strings."""
    left[0] -= 1
    if isinstance(data, str):
        return truncate(data, _MAX_CHARS)
    if isinstance(data, dict):
        pairs = itertools.takewhile(lambda _: left[0] > 0, data.items())
        shown = {truncate(key, _MAX_CHARS): _shorten(value, left) for key, value in pairs}
        return shown if len(shown) == len(data) else {**shown, "...": _OMITTED}
    if isinstance(data, list):
        values = [_shorten(v, left) for v in itertools.takewhile(lambda _: left[0] > 0, data)]
        return values if len(values) == len(data) else [*values, _OMITTED]
    return data


def _describe_hashes(header: Header) -> str:
    if header.hashes is None:
        return "absent (format 1)"
    return f"sha256 of each of {len(header.hashes)} tensors; model hash {header.identity}"


def _describe_base(base: dict[str, Any]) -> str:
    revision = f"@{base['revision']}" if base["revision"] else ""
    return f"{base['name']}{revision}, {len(base['tensors'])} tensors with sha256 {base['sha256']}"


def _describe_probe(probe: dict[str, Any] | None) -> str:
    if probe is None:
        return "absent (format 1)"
    if "skipped" in probe:
        return f"skipped: {one_line(truncate(probe['skipped']))}"
    sides = (
        ", ".join(f"{name} {row['shape']}" for name, row in probe[side].items())
        for side in ("inputs", "outputs")
    )
    return one_line(truncate(" -> ".join(sides)))
