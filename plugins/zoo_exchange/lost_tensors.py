"""Tensors that an import or an export leaves out, named with what they are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from zoo.errors import one_line, truncate
from zoo_exchange.mapping import Originals, TensorMap, TensorPlan

LOST = "lost"
"""The key of the provenance with the tensors that an import has left out."""
_MAX_LISTED = 20


def import_notes(lost: Mapping[str, str]) -> list[str]:
    """Return a line for each purpose of the tensors that an import leaves out."""
    return [
        f"not imported: {names}, {purpose}; an export does not have the values"
        for names, purpose in _by_purpose(lost)
    ]


def export_notes(
    tensor_map: TensorMap,
    tensors: TensorPlan,
    originals: Originals,
    provenance: Mapping[str, Any],
    classes: Iterable[str],
) -> list[str]:
    """Return a line for each purpose of the tensors that the other library would initialise.

    Args:
        tensor_map: the map of the import.
        tensors: the export, with the names of the file that was imported.
        originals: what restores them.
        provenance: that of the model.
        classes: the classes of the other library that the export names.
    """
    found = provenance.get(LOST)
    lost = {str(k): str(v) for k, v in found.items()} if isinstance(found, Mapping) else {}
    for drop in tensor_map.drops:
        if drop.purpose and not set(drop.classes).isdisjoint(classes):
            names = (originals.names.get(name, name) for name in drop.pattern.expand({}))
            lost = {**dict.fromkeys(names, drop.purpose), **lost}
    filled = {name for job in tensors.jobs if not job.sources for name in job.targets}
    written = tensors.targets.keys() - filled
    absent = {name: purpose for name, purpose in lost.items() if name not in tensors.targets}
    constant = {name: purpose for name, purpose in lost.items() if name in filled - written}
    return [
        *(
            f"not exported: {names}, {purpose}; classes that have it initialise it"
            for names, purpose in _by_purpose(absent)
        ),
        *(
            f"exported with a constant value: {names}, {purpose}"
            for names, purpose in _by_purpose(constant)
        ),
    ]


def _by_purpose(lost: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the names of the tensors of each purpose, and the purpose."""
    for purpose in dict.fromkeys(lost.values()):
        names = [one_line(truncate(name, 100)) for name in lost if lost[name] == purpose]
        more = f" and {len(names) - _MAX_LISTED:,} more" if len(names) > _MAX_LISTED else ""
        yield ", ".join(names[:_MAX_LISTED]) + more, one_line(truncate(purpose, 200))
