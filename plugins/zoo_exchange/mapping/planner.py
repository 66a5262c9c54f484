"""Planning of a map: every conversion, or every problem, before any tensor is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import torch
from torch import Tensor

from zoo.errors import Place, Problem, SpecError, ZooError
from zoo.interfaces.tensors import TensorMeta
from zoo_exchange.mapping.fill_value import (
    FillValue,
    check_fill,
    filled_tensor,
    format_fill_value,
)
from zoo_exchange.mapping.matcher import MatchingWork
from zoo_exchange.mapping.rules import Endpoint, Fill, Rule, TensorMap, expand_endpoints
from zoo_exchange.mapping.tensor_plan import TensorJob, TensorPlan, truncate_problems

MAX_PROBLEMS = 1_000
"""Number of problems after which planning ends."""

FLOAT_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""Dtypes that convert to each other; 8-bit floats need a scale, so only a map converts them."""

TensorMetas = Mapping[str, TensorMeta]

_JOB_STEPS = 5
"""Steps of matching that planning one conversion counts as."""


def plan_tensors(
    tensor_map: TensorMap,
    sources: TensorMetas,
    targets: TensorMetas | None,
    *,
    dtype: torch.dtype | None = None,
) -> TensorPlan:
    """Return every job of a map; raise SpecError with every problem.

    Args:
        tensor_map: the rules.
        sources: the tensors to convert.
        targets: the tensors that must result; None accepts all results (an export).
        dtype: the dtype of floating-point targets, by default the widest of the results.
    """
    return _Planner(tensor_map, sources, targets, dtype).plan()


def plan_inverse(tensor_map: TensorMap, targets: TensorMetas) -> Sequence[TensorJob]:
    """Return the jobs of an export of these tensors that have no problems."""
    planner = _Planner(tensor_map.inverse(), targets, None, None)
    with suppress(ZooError):  # too many problems
        planner.collect()
    return planner.jobs


class _Planner:
    def __init__(
        self,
        tensor_map: TensorMap,
        sources: TensorMetas,
        targets: TensorMetas | None,
        dtype: torch.dtype | None,
    ) -> None:
        self.map = tensor_map
        self.work = MatchingWork()
        self.file_names = tensor_map.canonical_names(list(sources), self.work)
        self.sources = {name: sources[actual] for name, actual in self.file_names.items()}
        self.targets = targets
        self.problems = list(tensor_map.problems)
        self.jobs: list[TensorJob] = []
        self.filled: dict[str, Place | None] = {}
        self.failed: set[str] = set()
        self.used: set[str] = set()
        self.unmatched: dict[str, tuple[Rule, str]] = {}
        self.dtype = dtype

    def plan(self) -> TensorPlan:
        plan = self.collect()
        if self.problems:
            raise SpecError(truncate_problems(self.problems))
        return plan

    def collect(self) -> TensorPlan:
        """Return the jobs without problems; add the other ones to `problems`."""
        unused = [str(r.place or r.path) for r in self.map.rules if not self._plan_rule(r)]
        floating = self.dtype or _widest_dtype(
            [meta.dtype for job in self.jobs for meta in job.targets.values()]
        )
        for fill in self.map.fills:
            self._plan_fill(fill, floating)
        dropped, constant, lost = self._check_unused_sources()
        for name, meta in (self.targets or {}).items():
            if name not in self.filled and name not in self.failed:
                self._add_problem(f"no rule sets the model's parameter '{name}' {list(meta.shape)}")
        target_dtype = self.dtype if self.targets is None else floating
        jobs = [_set_dtype(job, target_dtype) for job in self.jobs]
        return TensorPlan(jobs, dropped, unused, constant, lost, self.file_names)

    def _plan_rule(self, rule: Rule) -> bool:
        """Plan a rule for all tensors that it matches; return False if there are none."""
        bindings = self._bindings(rule)
        for binding in bindings:
            endpoints = (*rule.sources, *rule.targets)
            self.work.add(_JOB_STEPS + sum(e.pattern.num_names(binding) for e in endpoints))
            sources = expand_endpoints(rule.sources, binding, self.sources, self.work)
            targets = expand_endpoints(rule.targets, binding, self.targets or (), self.work)
            if self.targets is not None and not any(name in self.targets for name, _ in targets):
                first = targets[0][0] if targets else str(rule.targets[0].pattern)
                for name, _ in sources:
                    self.unmatched.setdefault(name, (rule, first))
                continue
            self._plan_job(rule, sources, targets)
            if len(self.problems) > MAX_PROBLEMS:
                raise SpecError(truncate_problems(self.problems))
        return bool(bindings)

    def _bindings(self, rule: Rule) -> list[dict[str, int]]:
        """Return every binding of the shared placeholders for which either side has a tensor."""
        shared = rule.shared
        found: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
        for endpoints, names in (
            (rule.targets, self.targets or {}),
            (rule.sources, self.sources),
        ):
            for endpoint in endpoints:
                for name in endpoint.pattern.candidates(names, self.work):
                    matched = endpoint.pattern.match(name, self.work)
                    if matched is not None and shared <= matched.keys():
                        binding = {key: matched[key] for key in sorted(shared)}
                        found.setdefault(tuple(binding.items()), binding)
        return [found[key] for key in sorted(found)]

    def _plan_job(
        self,
        rule: Rule,
        named_sources: list[tuple[str, Endpoint]],
        named_targets: list[tuple[str, Endpoint]],
    ) -> None:
        source_names = [name for name, _ in named_sources]
        names = [name for name, _ in named_targets]
        self.used |= set(source_names)
        problems = self._missing_names(source_names, names)
        if rule.unsupported_reason:
            problems.insert(0, rule.unsupported_reason)
        if problems:
            self._record_failure(rule, names, problems)
            return
        sources = [endpoint for _, endpoint in named_sources]
        targets = [endpoint for _, endpoint in named_targets]

        def convert(tensors: Sequence[Tensor]) -> list[Tensor]:
            return rule.run(tensors, sources, targets)

        try:
            outputs = convert([self.sources[name].empty() for name in source_names])
        except (ZooError, RuntimeError, ValueError, TypeError) as error:  # torch raises its own
            self._record_failure(rule, names, [f"'{names[0]}': {str(error).splitlines()[0]}"])
            return
        metas = {}
        for name, tensor in zip(names, outputs, strict=True):
            metas[name] = TensorMeta.of(tensor)
            self._check_target(rule, name, metas[name])
        file_names = [self.file_names[name] for name in source_names]
        steps = rule.steps()
        checks_values = any(step.checks_values for step in steps)
        names = [str(step) for step in steps]
        self._add_job(TensorJob(rule, file_names, metas, convert, names, checks_values))

    def _missing_names(self, sources: list[str], targets: list[str]) -> list[str]:
        problems = []
        missing = [name for name in sources if name not in self.sources]
        if missing:
            where = "the file" if self.targets is not None else "the model"
            problems.append(f"'{targets[0]}' needs '{missing[0]}', which is not in {where}")
        if self.targets is not None:
            absent = [name for name in targets if name not in self.targets]
            if absent:
                problems.append(f"the model has no parameter '{absent[0]}'")
        return problems

    def _check_target(self, rule: Rule, name: str, result: TensorMeta) -> None:
        """Compare a result with the model's parameter; floating-point dtypes may differ."""
        if self.targets is None:
            return
        expected = self.targets[name]
        if result.shape != expected.shape:
            message = f"'{name}' has shape {list(result.shape)}, expected {list(expected.shape)}"
            self.problems.append(rule.problem(message))
        is_floating = result.dtype in FLOAT_DTYPES and expected.dtype in FLOAT_DTYPES
        if not is_floating and result.dtype != expected.dtype:
            message = f"'{name}' has dtype {result.dtype}, expected {expected.dtype}"
            self.problems.append(rule.problem(message))

    def _plan_fill(self, fill: Fill, floating: torch.dtype) -> None:
        if self.targets is None:
            meta = TensorMeta(tuple(fill.shape or ()), floating)
            metas = dict.fromkeys(fill.pattern.expand({}), meta)
        else:
            metas = {
                n: m
                for n, m in self.targets.items()
                if fill.pattern.match(n, self.work) is not None
            }
        for name, meta in metas.items():
            dtype = floating if meta.dtype.is_floating_point else meta.dtype

            def convert(
                _: Sequence[Tensor], shape: Sequence[int] = meta.shape, dtype: torch.dtype = dtype
            ) -> list[Tensor]:
                return [filled_tensor(shape, fill.value, dtype)]

            try:
                check_fill(meta.shape, fill.value, dtype)
            except ZooError as error:
                self.problems.append(fill.problem(f"'{name}': {error}"))
            steps = [f"fill {format_fill_value(fill.value)}"]
            self._add_job(TensorJob(fill, [], {name: meta}, convert, steps))

    def _add_job(self, job: TensorJob) -> None:
        for name in job.targets:
            if name in self.filled:
                first = self.filled[name]
                where = f", first in line {first.line}" if first else ""
                self.problems.append(job.entry.problem(f"'{name}' is set more than once{where}"))
            self.filled[name] = job.entry.place
        self.jobs.append(job)

    def _record_failure(self, rule: Rule, names: list[str], reasons: list[str]) -> None:
        self.failed |= set(names)
        self.problems += [rule.problem(reason) for reason in reasons]

    def _check_unused_sources(self) -> tuple[list[str], dict[str, FillValue], dict[str, str]]:
        """Return the dropped sources, required values and purposes; others are problems."""
        dropped: list[str] = []
        constant: dict[str, FillValue] = {}
        lost: dict[str, str] = {}
        for name in self.sources:
            if name in self.used:
                continue
            drops = [
                drop for drop in self.map.drops if drop.pattern.match(name, self.work) is not None
            ]
            if drops:
                dropped.append(self.file_names[name])
                if drops[0].required_value is not None:
                    constant[name] = drops[0].required_value
                if drops[0].purpose:
                    lost[self.file_names[name]] = drops[0].purpose
            elif name in self.unmatched:
                rule, target = self.unmatched[name]
                self.problems.append(
                    rule.problem(
                        f"'{self.file_names[name]}' is in the file, but the model has no "
                        f"parameter '{target}'"
                    )
                )
            else:
                shape = list(self.sources[name].shape)
                self._add_problem(
                    f"no rule uses '{self.file_names[name]}' {shape}; add a rule or a 'drop' entry"
                )
        return dropped, constant, lost

    def _add_problem(self, message: str) -> None:
        self.problems.append(Problem(message, place=Place(self.map.file)))


def _set_dtype(job: TensorJob, floating: torch.dtype | None) -> TensorJob:
    """Return the job with this dtype for its floating-point targets."""
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
    for dtype in floats[1:]:
        widest = torch.promote_types(widest, dtype)
    return widest
