"""Which scorers, alignments and positions can be combined in an attention."""

from __future__ import annotations

from collections.abc import Sequence

from zoo.errors import ZooError
from zoo.interfaces import Alignment, Position, Scorer
from zoo.registry.blueprint import Blueprint


def forbid_sequential(parts: Sequence[Scorer | Alignment], where: str) -> None:
    """Raise ZooError if a part depends on previous queries."""
    for part in parts:
        if part.sequential:
            raise ZooError(
                f"{part.kind} '{part.name}' depends on previous queries, "
                f"but {where} processes all queries in parallel; use another {part.kind} or "
                "a recurrent decoder"
            )


def forbid_rotary(scorer: Scorer, position: Position | None) -> None:
    """Raise ZooError if the position requires an inner product, which the scorer is not."""
    if position is None or scorer.supports_rotary:
        return
    if position.is_rotary or position.requires_inner_product:
        what = "rotates" if position.is_rotary else "compares positions with"
        raise ZooError(
            f"position '{position.name}' {what} queries and keys, which requires an inner "
            f"product, but the score of scorer '{scorer.name}' is not an inner product; use "
            "another scorer, for example scaled-dot"
        )


def resolve_project(project: str, scorer: Blueprint[Scorer], heads: int) -> str:
    """Return the projections of 'auto'; raise ZooError if one would get no gradient."""
    ignores_keys = scorer.cls.ignores_keys
    if project == "auto":
        return "none" if heads == 1 else "kv" if ignores_keys else "qkv"
    if project == "qkv" and ignores_keys:
        raise ZooError(
            f"scorer '{scorer.label}' ignores keys, so their projection would get no gradient; set "
            "project: kv"
        )
    return project
