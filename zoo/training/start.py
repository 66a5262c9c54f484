"""The start of a training from the weights of another model: what is taken, and what is fresh."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from zoo.adapters import find_adapters
from zoo.artifact.versions import resolve_versions
from zoo.data.tokenizer import Tokenizer
from zoo.errors import Problem, SpecError, ZooError
from zoo.hub.base_model import BaseModel, find_base
from zoo.interfaces import Model
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import build_on_meta
from zoo.spec.fine_tuning import Start
from zoo.spec.spec import Spec
from zoo.training.part_matching import Matching, match_parts, tensor_names
from zoo.training.spec_changes import find_changes

_MAX_LISTED = 8


@dataclass(frozen=True)
class OpenBase:
    """A model with weights, as the installed components define it.

    Attributes:
        tensors: its tensors by name.
        model: the model on the meta device.
        spec: its spec.
    """

    base: BaseModel
    tensors: Mapping[str, Tensor] = field(repr=False)
    model: Model = field(repr=False)
    spec: Spec = field(repr=False)

    @property
    def tokenizers(self) -> Mapping[str, str]:
        return self.base.artifact.header.tokenizer


def open_base(start: Start, registry: ComponentRegistry | None = None) -> OpenBase:
    """Open the model that a training starts from, and compare its hashes.

    Raises:
        ZooError: if it is missing, damaged, or not the expected one.
    """
    base = find_base(start.weights)
    base.check(start.sha256)
    header = base.artifact.header
    resolved = resolve_versions(header, base.artifact, registry or default_registry())
    model: Model = build_on_meta(resolved.spec.model_only()).part
    return OpenBase(base, resolved.tensors, model, resolved.spec)


@dataclass(frozen=True)
class StartPlan:
    """What a training takes from a base.

    Attributes:
        tokenizers: the tokenizers that are taken, by key of the batch.
        preprocessing: keys whose preprocessing is that of the base.
        settings: parameters of the parts that are taken which differ, such as dropout: the tensors
            of a part do not show, for example, its number of heads.
    """

    opened: OpenBase
    matching: Matching
    tokenizers: Mapping[str, str] = field(default_factory=dict, repr=False)
    preprocessing: Sequence[str] = ()
    settings: Sequence[str] = ()

    @torch.no_grad()
    def apply(self, model: Model) -> None:
        """Set the tensors of a model that are taken; dtypes are converted to those of the model."""
        ours, matching = tensor_names(model), self.matching
        for name, other in matching.taken.items():
            source = self._read(other)
            rows = matching.grown.get(name)
            (ours[name] if rows is None else ours[name][:rows]).copy_(source)

    def _read(self, name: str) -> Tensor:
        """Return a tensor of the base; one that modules share is stored under one of its names."""
        tensors = self.opened.tensors
        if name in tensors:
            return tensors[name]
        names = tensor_names(self.opened.model)
        stored = next(each for each in tensors if names.get(each) is names[name])
        return tensors[stored]

    def lines(self) -> list[str]:
        """Return the plan in words, one line per fact."""
        base, matching = self.opened.base, self.matching
        commit = f" at commit {base.commit[:12]}" if base.commit else ""
        parts = [
            ours if ours == other else f"{ours} (from {other})"
            for ours, other in matching.parts.items()
        ]
        lines = [
            f"start: {base.name}{commit}, sha256 {base.sha256[:12]}",
            f"taken: {', '.join(parts)} ({matching.tensors} tensors)",
        ]
        lines += [f"fresh: {each}" for each in matching.fresh]
        lines += [f"fresh: {name}: rows from {rows:,} on" for name, rows in matching.grown.items()]
        lines += [f"setting: {each} (base -> here)" for each in self.settings[:_MAX_LISTED]]
        if len(self.settings) > _MAX_LISTED:
            lines.append(f"setting: {len(self.settings) - _MAX_LISTED} more differ from the base")
        if self.preprocessing:
            lines.append(f"preprocessing of the base: {', '.join(self.preprocessing)}")
        if self.tokenizers:
            lines.append(f"tokenizer of the base: {', '.join(self.tokenizers)}")
        if matching.unused:
            lines.append(f"not used of the base: {', '.join(matching.unused)}")
        return lines

    def record(self) -> dict[str, Any]:
        """Return what provenance, log and checkpoints contain, as JSON."""
        matching = self.matching
        return {
            **self.opened.base.record(),
            "parts": dict(matching.parts),
            "fresh": [str(each) for each in matching.fresh[:_MAX_LISTED]]
            + [f"{name}: rows from {rows}" for name, rows in matching.grown.items()],
            "grown": sorted(matching.grown),
            "settings": list(self.settings[:_MAX_LISTED]),
            "preprocessing": list(self.preprocessing),
            "tokenizers": sorted(self.tokenizers),
        }


def freeze_base(model: Model, record: Mapping[str, Any]) -> None:
    """Freeze what a model with adapters has taken from its base, and train the rest of it.

    Args:
        record: the base, as `StartPlan.record` returned it.
    """
    if not find_adapters(model):
        return
    grown, parts = record.get("grown", ()), tuple(f"{part}." for part in record["parts"])
    frozen = {
        id(tensor)
        for name, tensor in tensor_names(model).items()
        if f"{name}.".startswith(parts) and name not in grown
    }
    for parameter in model.parameters():
        parameter.requires_grad_(id(parameter) not in frozen)


def plan_start(
    spec: Spec,
    model: Model,
    opened: OpenBase,
    tokenizers: Mapping[str, str | None],
    *,
    preprocessing: Sequence[str] = (),
    any_length: bool = False,
) -> StartPlan:
    """Compare a spec with the base that it starts from; nothing is changed.

    Args:
        model: the model of the spec on the meta device.
        tokenizers: the texts that the preprocessors of the spec read from files, by key; None for
            those that take the text of the base.
        preprocessing: keys whose preprocessing is that of the base.
        any_length: accept tables with any number of rows.

    Raises:
        SpecError: if the base does not fit, with the place of ``train.start``.
    """
    section = spec.sections.train
    assert section is not None
    start = section.build().start
    assert start is not None
    try:
        matching, kept = match_model(model, opened, start.parts, tokenizers, any_length=any_length)
    except SpecError:
        raise
    except ZooError as error:
        message = f"{start.weights} does not fit the model: {error}"
        raise SpecError([Problem(message, "train.start", section.places.get("start"))]) from None
    settings = _changed_settings(spec, opened.spec, matching)
    return StartPlan(opened, matching, kept, preprocessing, settings)


def _changed_settings(spec: Spec, base: Spec, matching: Matching) -> list[str]:
    """Return the parameters of the parts that are taken which differ in the specs."""
    ours, theirs = spec.resolve()["model"], base.resolve()["model"]
    return [
        str(change)
        for path, other in matching.parts.items()
        if path in ours and other in theirs
        for change in find_changes(theirs[other], ours[path], path)
    ]


def match_model(
    model: Model,
    opened: OpenBase,
    parts: Mapping[str, str] | None,
    tokenizers: Mapping[str, str | None],
    *,
    any_length: bool = False,
) -> tuple[Matching, dict[str, str]]:
    """Return which tensors are taken, and the tokenizers of the base that are used, by key."""
    kept: dict[str, str] = {}
    growth = _length_pairs(model, opened.model) if any_length else set()
    unfit: dict[str, str] = {}
    for key, own in tokenizers.items():
        stored = opened.tokenizers.get(key)
        if stored is None:
            continue
        if own is None:
            kept[key] = stored
        elif (problem := compare_tokenizers(stored, own)) is not None:
            unfit[key] = problem
            continue
        growth.add((_vocab_size(opened.model, key), _vocab_size(model, key)))
    grown = {(old, new) for old, new in growth if any_length or old < new}
    matching = match_parts(model, opened.model, parts, grown)
    for key, problem in unfit.items():
        tables = _embedding_names(model, key) & matching.taken.keys()
        if tables:
            raise ZooError(
                f"preprocessing.{key}: the tokenizer does not fit {min(tables)}, which is taken "
                f"from the base: {problem}; remove the tokenizer to use that of the base, or leave "
                "the embedding out of train.start.parts"
            )
    return matching, kept


def _length_pairs(model: Model, base: Model) -> set[tuple[int, int]]:
    ours, theirs = ({len(t) for t in tensor_names(m).values() if t.dim()} for m in (model, base))
    return {(old, new) for old in theirs for new in ours}


def compare_tokenizers(base: str, own: str) -> str | None:
    """Return why a tokenizer does not have the tokens of another one with the same IDs; None if it
    has, and perhaps more."""
    if base == own:
        return None
    old, new = (Tokenizer(text).backend.get_vocab() for text in (base, own))
    for token, number in sorted(old.items(), key=lambda item: item[1]):
        if new.get(token) != number:
            found = "is missing" if token not in new else f"is {new[token]}"
            return f"token {token!a} has the ID {number} in the base, but {found} here"
    return None


def _vocab_size(model: Model, key: str) -> int:
    schema = (model.batch_schema() or {}).get(key)
    return schema.below if schema is not None and isinstance(schema.below, int) else 0


def _embedding_names(model: Model, key: str) -> set[str]:
    """Return the names of the parameters of the embedding of a key; empty if it has none."""
    try:
        weights = {id(weight) for weight in model.get_embedding(key).parameters()}
    except ZooError:
        return set()
    return {name for name, tensor in tensor_names(model).items() if id(tensor) in weights}


def start_from(
    model: Model,
    weights: str | os.PathLike[str],
    *,
    parts: Mapping[str, str] | None = None,
    registry: ComponentRegistry | None = None,
) -> list[str]:
    """Set weights of a model from another one, as ``train.start`` does, and return what is taken.

    A model without tokenizers gets those of the base.

    Args:
        weights: a file, the folder of a run or a checkpoint, a shipped name, or
            ``org/name[@revision]``.
        parts: paths of parts in the base, by path in the model; default: all parts that fit.

    Raises:
        ZooError: if there is no such model, or it does not fit.
    """
    opened = open_base(Start(weights=os.fspath(weights)), registry)
    own = model.tokenizer or {}
    tokenizers = {key: own.get(key) for key in opened.tokenizers}
    plan = StartPlan(opened, *match_model(model, opened, parts, tokenizers))
    plan.apply(model)
    if not own:
        model.tokenizer = dict(plan.tokenizers) or None
    return plan.lines()
