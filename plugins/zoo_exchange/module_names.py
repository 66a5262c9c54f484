"""Module names of another library and the corresponding modules of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from zoo_exchange.mapping import TensorPlan


def related_modules(plan: TensorPlan) -> dict[str, str]:
    """Return each module of the other library whose tensors are exactly those of one of ours.

    The modules of a tensor ``model.layers.0.mlp.weight`` are ``model.layers.0.mlp`` and the
    modules that contain it.
    """
    theirs: dict[str, set[str]] = {}
    ours: dict[str, set[str]] = {}
    for job in plan.jobs:
        targets = set(job.targets) if job.sources else set()
        for source in job.sources:
            for module in _modules(source):
                theirs.setdefault(module, set()).update(targets)
        for target in targets:
            for module in _modules(target):
                ours.setdefault(module, set()).add(target)
    return dict(_pairs(theirs, ours))


def _pairs(
    theirs: Mapping[str, set[str]], ours: Mapping[str, set[str]]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs with the same parameters; nested modules are paired from the innermost."""
    theirs_by_set, ours_by_set = _by_parameters(theirs), _by_parameters(ours)
    for parameters, modules in theirs_by_set.items():
        yield from zip(modules, ours_by_set.get(parameters, []), strict=False)


def _by_parameters(modules: Mapping[str, set[str]]) -> dict[frozenset[str], list[str]]:
    """Return the modules with each set of parameters, from the innermost."""
    found: dict[frozenset[str], list[str]] = {}
    for module in sorted(modules, key=len, reverse=True):
        found.setdefault(frozenset(modules[module]), []).append(module)
    return found


def _modules(tensor: str) -> Iterable[str]:
    """Return the names of the modules that contain a tensor, from the outermost."""
    parts = tensor.split(".")[:-1]
    return [".".join(parts[: i + 1]) for i in range(len(parts))]
