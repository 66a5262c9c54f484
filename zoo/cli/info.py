"""`zoo info`: show the header of a model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from zoo.cli.output import JsonOption, ModelArgument, format_bytes, print_json, print_rows
from zoo.errors import one_line

if TYPE_CHECKING:
    from zoo.artifact import Header

EXAMPLE = "zoo info model.safetensors"


def command(model: ModelArgument, as_json: JsonOption = False) -> None:
    """Show the spec, providers, provenance, hashes, probe and sizes of a model.

    Weights are not loaded. For a model on the Hub, only the header is downloaded.
    """
    from zoo.hub.models import read_header

    header = read_header(model)
    if as_json:
        print_json(header.as_json())
    else:
        _print(header)


def _print(header: Header) -> None:
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
    print(f"tokenizer: {one_line(', '.join(sorted(header.tokenizer))) or 'none'}\n")
    print(yaml.safe_dump({"provenance": header.provenance}, sort_keys=False, allow_unicode=True))
    print(yaml.safe_dump({"spec": header.spec}, sort_keys=False, allow_unicode=True))
    print("providers:")
    columns = ("kind", "component", "version", "plugin", "distribution")
    print_rows(columns, map(_provider_cells, header.providers), no_wrap=columns)


def _provider_cells(row: dict[str, Any]) -> tuple[str, ...]:
    distribution = f"{row['distribution']} {row['distribution_version']}"
    return (row["kind"], row["name"], str(row["version"]), row["plugin"], distribution)


def _describe_hashes(header: Header) -> str:
    if header.hashes is None:
        return "absent (format 1)"
    return f"sha256 of each of {len(header.hashes)} tensors; model hash {header.identity}"


def _describe_probe(probe: dict[str, Any] | None) -> str:
    if probe is None:
        return "absent (format 1)"
    if "skipped" in probe:
        return f"skipped: {one_line(probe['skipped'])}"
    sides = (
        ", ".join(f"{name} {row['shape']}" for name, row in probe[side].items())
        for side in ("inputs", "outputs")
    )
    return one_line(" -> ".join(sides))
