"""A map laid on the tensors of a file and of a model: every job, or every fault, beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from zoo.errors import Place, Problem, SpecError, ZooError
from zoo.exchange.mapping.rules import Endpoint, Fill, Rule, TensorMap, expand
from zoo.interfaces.tensors import TensorMeta

MAX_SHOWN = 4
"""How many faults of one rule are told."""

FLOAT_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""Floats that can stand for each other; eight bits need a scale, which only a map knows of."""

TensorMetas = Mapping[str, TensorMeta]


@dataclass(frozen=True)
class Job:
    """One use of a rule: these tensors become those."""

    sources: Sequence[str]
    targets: Mapping[str, TensorMeta]
    make: Callable[[Sequence[Tensor]], list[Tensor]]
    steps: Sequence[str]
    line: int | None

    def run(self, read: Callable[[str], Tensor]) -> Iterator[tuple[str, Tensor]]:
        """The targets, each in its own memory and of its own type."""
        made = self.make([read(name) for name in self.sources])
        for (name, meta), tensor in zip(self.targets.items(), made, strict=True):
            yield name, tensor.to(meta.dtype).contiguous()


@dataclass(frozen=True)
class Plan:
    """What goes where; nothing has been read yet."""

    jobs: Sequence[Job]
    dropped: Sequence[str] = ()
    unused: Sequence[str] = ()
    """Rules that found nothing on either side, by their place."""
    constant: Mapping[str, float] = field(default_factory=dict)
    """Tensors that may be left behind only while they are this number throughout."""

    @property
    def targets(self) -> dict[str, TensorMeta]:
        return {name: meta for job in self.jobs for name, meta in job.targets.items()}

    def run(
        self, read: Callable[[str], Tensor], progress: Callable[[int], None] | None = None
    ) -> Iterator[tuple[str, Tensor]]:
        """Every target, one job after the other; `progress` hears of bytes done."""
        for job in self.jobs:
            for name, tensor in job.run(read):
                yield name, tensor
                if progress:
                    progress(tensor.nbytes)

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                "target": name,
                "shape": list(meta.shape),
                "dtype": str(meta.dtype).removeprefix("torch."),
                "sources": list(job.sources),
                "operations": list(job.steps),
                "line": job.line,
            }
            for job in self.jobs
            for name, meta in job.targets.items()
        ]
        return {"tensors": rows, "dropped": list(self.dropped), "unused_rules": list(self.unused)}


def plan(
    tensor_map: TensorMap,
    sources: TensorMetas,
    targets: TensorMetas | None,
    *,
    dtype: torch.dtype | None = None,
) -> Plan:
    """Every job of a map, or SpecError with all that does not fit.

    Without `targets` (an export) the other side takes whatever the rules make. Floating targets
    get `dtype`, or the widest that the rules make if none is asked for.
    """
    return _Planner(tensor_map, sources, targets, dtype).plan()


class _Planner:
    def __init__(
        self,
        tensor_map: TensorMap,
        sources: TensorMetas,
        targets: TensorMetas | None,
        dtype: torch.dtype | None,
    ) -> None:
        self.map = tensor_map
        self.known = tensor_map.canonical_names(list(sources))
        self.sources = {name: sources[actual] for name, actual in self.known.items()}
        self.targets = targets
        self.problems = list(tensor_map.problems)
        self.jobs: list[Job] = []
        self.filled: dict[str, Place | None] = {}
        self.failed: set[str] = set()
        self.used: set[str] = set()
        self.unmatched: dict[str, tuple[Rule, str]] = {}
        self.dtype = dtype

    def plan(self) -> Plan:
        unused = [str(r.place or r.path) for r in self.map.rules if not self._plan_rule(r)]
        floating = self.dtype or _widest_dtype(
            [f.dtype for j in self.jobs for f in j.targets.values()]
        )
        for fill in self.map.fills:
            self._plan_fill(fill, floating)
        dropped, constant = self._check_unused_sources()
        for name, meta in (self.targets or {}).items():
            if name not in self.filled and name not in self.failed:
                self._add_problem(f"nothing fills '{name}' {list(meta.shape)} of the model")
        if self.problems:
            raise SpecError(_truncate_problems(self.problems))
        one = self.dtype if self.targets is None else floating
        return Plan([_set_dtype(job, one) for job in self.jobs], dropped, unused, constant)

    def _plan_rule(self, rule: Rule) -> bool:
        """Plan the rule for all it matches; False if that is nothing."""
        bindings = self._bindings(rule)
        for binding in bindings:
            before, after = expand(rule.sources, binding), expand(rule.targets, binding)
            if self.targets is not None and not any(name in self.targets for name, _ in after):
                for name, _ in before:
                    self.unmatched.setdefault(name, (rule, after[0][0]))
                continue
            self._plan_job(rule, before, after)
        return bool(bindings)

    def _bindings(self, rule: Rule) -> list[dict[str, int]]:
        """Every filling of the shared places for which either side has a tensor."""
        shared = rule.shared
        found: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
        for ends, names in ((rule.targets, self.targets or {}), (rule.sources, self.sources)):
            for end in ends:
                for name in names:
                    matched = end.pattern.match(name)
                    if matched is not None and shared <= matched.keys():
                        binding = {key: matched[key] for key in sorted(shared)}
                        found.setdefault(tuple(binding.items()), binding)
        return [found[key] for key in sorted(found)]

    def _plan_job(
        self, rule: Rule, before: list[tuple[str, Endpoint]], after: list[tuple[str, Endpoint]]
    ) -> None:
        names = [name for name, _ in after]
        problems = []
        if rule.unsupported_reason:
            problems.append(rule.unsupported_reason)
        missing = [name for name, _ in before if name not in self.sources]
        if missing:
            where = "the file" if self.targets is not None else "the model"
            problems.append(f"'{names[0]}' needs '{missing[0]}', which is not in {where}")
        absent = [name for name in names if self.targets is not None and name not in self.targets]
        if absent:
            problems.append(f"the model has no '{absent[0]}'")
        self.used |= {name for name, _ in before}
        if problems:
            self._record_failure(rule, names, problems)
            return
        sources, targets = [end for _, end in before], [end for _, end in after]

        def make(tensors: Sequence[Tensor]) -> list[Tensor]:
            return rule.run(tensors, sources, targets)

        try:
            made = make([self.sources[name].empty() for name, _ in before])
        except (ZooError, RuntimeError, ValueError, TypeError) as error:  # torch has its own
            self._record_failure(rule, names, [f"'{names[0]}': {str(error).splitlines()[0]}"])
            return
        metas = {}
        for name, tensor in zip(names, made, strict=True):
            metas[name] = TensorMeta.of(tensor)
            self._check_target(rule, name, metas[name])
        actual = [self.known[name] for name, _ in before]
        self._add_job(Job(actual, metas, make, rule.steps(), _line(rule.place)), rule)

    def _check_target(self, rule: Rule, name: str, made: TensorMeta) -> None:
        """What a rule makes against what the model has; floats may be of any width."""
        if self.targets is None:
            return
        wanted = self.targets[name]
        if made.shape != wanted.shape:
            message = f"'{name}' becomes {list(made.shape)}, should be {list(wanted.shape)}"
            self.problems.append(rule.problem(message))
        both = made.dtype in FLOAT_DTYPES and wanted.dtype in FLOAT_DTYPES
        if not both and made.dtype != wanted.dtype:
            message = f"'{name}' is {made.dtype}, should be {wanted.dtype}"
            self.problems.append(rule.problem(message))

    def _plan_fill(self, fill: Fill, floating: torch.dtype) -> None:
        if self.targets is None:
            meta = TensorMeta(tuple(fill.shape or ()), floating)
            metas = dict.fromkeys(fill.pattern.expand({}), meta)
        else:
            metas = {n: f for n, f in self.targets.items() if fill.pattern.match(n) is not None}
        for name, meta in metas.items():

            def make(_: Sequence[Tensor], meta: TensorMeta = meta) -> list[Tensor]:
                return [torch.full(meta.shape, fill.value, dtype=meta.dtype)]

            dtype = floating if meta.dtype.is_floating_point else meta.dtype
            try:
                torch.full((), fill.value, dtype=dtype)
            except RuntimeError:
                self.problems.append(fill.problem(f"{fill.value:g} is too large for {dtype}"))
            steps = [f"fill {fill.value:g}"]
            self._add_job(Job([], {name: meta}, make, steps, _line(fill.place)), fill)

    def _add_job(self, job: Job, rule: Rule | Fill) -> None:
        for name in job.targets:
            if name in self.filled:
                first = self.filled[name]
                where = f"; the first is in line {first.line}" if first else ""
                self.problems.append(rule.problem(f"'{name}' is filled a second time{where}"))
            self.filled[name] = rule.place
        self.jobs.append(job)

    def _record_failure(self, rule: Rule, names: list[str], reasons: list[str]) -> None:
        self.failed |= set(names)
        self.problems += [rule.problem(reason) for reason in reasons]

    def _check_unused_sources(self) -> tuple[list[str], dict[str, float]]:
        """Sources that no rule takes: dropped ones are noted, others are faults."""
        dropped, constant = [], {}
        for name in self.sources:
            if name in self.used:
                continue
            drops = [drop for drop in self.map.drops if drop.pattern.match(name) is not None]
            if drops:
                dropped.append(self.known[name])
                if drops[0].required_value is not None:
                    constant[name] = drops[0].required_value
            elif name in self.unmatched:
                rule, target = self.unmatched[name]
                message = f"'{self.known[name]}' is in the file, but the model has no '{target}'"
                self.problems.append(rule.problem(message))
            else:
                shape = list(self.sources[name].shape)
                self._add_problem(
                    f"no rule takes '{self.known[name]}' {shape}, and it is not dropped"
                )
        return dropped, constant

    def _add_problem(self, message: str) -> None:
        self.problems.append(Problem(message, place=Place(self.map.file, 1, 1)))


def _truncate_problems(problems: Sequence[Problem]) -> list[Problem]:
    """The faults, where a rule that fails in every layer is told by a few of them."""
    rules: dict[str, list[Problem]] = {}
    for problem in problems:
        rules.setdefault(problem.path, []).append(problem)
    told = []
    for path, faults in rules.items():
        few = faults[:MAX_SHOWN] if path and len(faults) > MAX_SHOWN + 1 else faults
        told += few
        if len(few) < len(faults):
            more = f"and {len(faults) - len(few):,} more by the same rule"
            told.append(replace(faults[0], message=more))
    return told


def _set_dtype(job: Job, floating: torch.dtype | None) -> Job:
    """The job with one type for its floating targets, if one is asked for."""
    metas = {
        name: TensorMeta(meta.shape, floating)
        if floating and meta.dtype.is_floating_point
        else meta
        for name, meta in job.targets.items()
    }
    return replace(job, targets=metas)


def _widest_dtype(dtypes: Sequence[torch.dtype]) -> torch.dtype:
    floats = [dtype for dtype in dtypes if dtype in FLOAT_DTYPES]
    widest = floats[0] if floats else torch.float32
    for one in floats[1:]:
        widest = torch.promote_types(widest, one)
    return widest


def _line(place: Place | None) -> int | None:
    return place.line if place else None
