"""The law of bounded cost, of all kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from zoo.interfaces import KINDS
from zoo.interfaces.signature import Parameter, parameters
from zoo.registry.work_limit import WorkLimit
from zoo.spec.meta import skip_dynamo_import
from zoo.testing.configuration import Configuration, small_params
from zoo.testing.law import Law, NotApplicable
from zoo.testing.limits import run_with_limits, supports_limits

HUGE = 10**10
_MAX_OPERATIONS = 20_000
_FORMS: tuple[Any, ...] = (HUGE, [HUGE], [HUGE, HUGE], {"a": HUGE})


def bounded_cost_law(laws: Sequence[Law]) -> Law:
    """Return the law of bounded cost of a kind; `laws` are those that run its components."""

    def bounded_cost(config: Configuration) -> None:
        """If any integer parameter is 10**10, the component raises an error, or is built and runs
        without work or memory in proportion to it."""
        if not supports_limits():
            raise NotApplicable("limits of processes need Linux")
        config.build()  # raises if a library is not installed
        variants = list(huge_params(config.cls, config.params))
        tasks = [
            partial(_cost_problem, replace(config, params=params, overrides={}), laws)
            for _, params in variants
        ]
        for (path, _), problem in zip(variants, run_with_limits(tasks), strict=True):
            assert not problem, f"{path}={HUGE}: {problem}"

    return Law("bounded-cost", bounded_cost, per_class=True)


def huge_params(cls: type, base: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield, for each integer in the parameters of a part, its path and the parameters with 10**10
    in its place. Parts in slots that are not components are included."""
    for parameter in parameters(cls):
        name = parameter.name
        if parameter.from_parent:
            continue
        if parameter.slot is None:
            for index, value in enumerate(_huge_values(parameter, base.get(name))):
                yield (f"{name} ({index + 1})" if index else name), {**base, name: value}
        elif parameter.slot.target not in KINDS.values():
            slot = parameter.slot
            inner = slot.parts(base.get(name)) or [small_params(slot.target)]
            for path, params in huge_params(slot.target, inner[0]):
                yield f"{name}.{path}", {**base, name: slot.value(params)}


def _huge_values(parameter: Parameter, base: Any) -> Iterator[Any]:
    """Yield the value with each of its integers replaced, or valid values with a huge integer."""
    if '"integer"' not in str(parameter.json_schema()).replace("'", '"'):
        return
    given = parameter.default if base is None else base
    if isinstance(given, (list, tuple)):
        for index, item in enumerate(given):
            if type(item) is int:
                yield [*given[:index], HUGE, *given[index + 1 :]]
    else:
        valid = [form for form in _FORMS if not parameter.validate(form)]
        yield from valid or [HUGE]


def _cost_problem(config: Configuration, laws: Sequence[Law]) -> str:
    """Run the first law that applies, on the meta device and on the CPU, within limits."""
    messages = []
    # Models are checked on the meta device before they are built.
    for device in ("cpu",) if config.cls.kind == "model" else ("meta", "cpu"):
        limit = WorkLimit(max_operations=_MAX_OPERATIONS)
        try:
            with skip_dynamo_import(), torch.device(device), limit:
                _run_first(config, laws)
        except Exception as error:  # a rejected value, or a law that needs the values of tensors
            messages.append(f"{type(error).__name__}: {error}")
        if limit.operations >= limit.max_operations:
            return f"needs more than {limit.max_operations:,} operations"
    return "takes memory in proportion to it" if "MemoryError" in str(messages) else ""


def _run_first(config: Configuration, laws: Sequence[Law]) -> None:
    for law in laws:
        try:
            law.run(config)
        except NotApplicable:
            continue
        return
