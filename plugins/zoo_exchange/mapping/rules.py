"""A map as rules: which tensors become which, by which operations, in both directions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from zoo.errors import Place, Problem, ZooError
from zoo_exchange.mapping.fill_value import FillValue
from zoo_exchange.mapping.matcher import MatchingWork
from zoo_exchange.mapping.operation import Operation
from zoo_exchange.mapping.pattern import Binding, Pattern, unlisted_indices


@dataclass(frozen=True)
class Endpoint:
    """Tensor names on one side of a rule, and the operations applied to each tensor separately."""

    pattern: Pattern
    operations: Sequence[Operation] = ()

    def inverse(self) -> Endpoint:
        return Endpoint(self.pattern, _invert(self.operations))


@dataclass(frozen=True, kw_only=True)
class MapEntry:
    """Where an entry of a map is written."""

    place: Place | None = None
    path: str = ""

    def problem(self, message: str) -> Problem:
        return Problem(message, self.path, self.place)


@dataclass(frozen=True)
class Rule(MapEntry):
    """A conversion of tensors: operations of each source, of the rule, and of each target."""

    sources: Sequence[Endpoint]
    targets: Sequence[Endpoint]
    operations: Sequence[Operation] = ()
    unsupported_reason: str = ""
    """Why the rule cannot be applied in this direction."""

    @property
    def shared(self) -> set[str]:
        """The placeholders on both sides; a choice on one side only stands for all its words."""
        source_names, target_names = (
            {name for endpoint in side for name in endpoint.pattern.names}
            for side in (self.sources, self.targets)
        )
        return source_names & target_names

    def run(
        self, tensors: Sequence[Tensor], sources: Sequence[Endpoint], targets: Sequence[Endpoint]
    ) -> list[Tensor]:
        """Return the target tensors; `sources` and `targets` hold one endpoint per tensor."""
        inputs = _apply_endpoints(sources, tensors)
        outputs = _apply_all(self.operations, inputs, len(targets))
        if len(outputs) != len(targets):
            raise ZooError(
                f"the operations return {len(outputs)} tensors, but the rule has {len(targets)} "
                "targets; use 'split' or 'join'"
            )
        return _apply_endpoints(targets, outputs)

    def inverse(self) -> Rule:
        try:
            inverse = replace(
                self,
                sources=[endpoint.inverse() for endpoint in self.targets],
                targets=[endpoint.inverse() for endpoint in self.sources],
                operations=_invert(self.operations),
            )
            unknown = sorted(_indices(self.sources) - _indices(self.targets))
            if unknown:
                raise ZooError(
                    f"index '{unknown[0]}' is in 'theirs' only, so its values are not known; list "
                    f"them, for example {{{unknown[0]}:0..8}}, with the operation 'merge'"
                )
            return inverse
        except ZooError as error:
            return replace(
                self,
                sources=self.targets,
                targets=self.sources,
                operations=(),
                unsupported_reason=str(error),
            )

    def steps(self) -> list[Operation]:
        """Return the operations in order."""
        before = [step for endpoint in self.sources for step in endpoint.operations]
        after = [step for endpoint in self.targets for step in endpoint.operations]
        return [*before, *self.operations, *after]


def _apply_endpoints(endpoints: Sequence[Endpoint], tensors: Sequence[Tensor]) -> list[Tensor]:
    return [
        _apply_all(endpoint.operations, [tensor], 1)[0]
        for endpoint, tensor in zip(endpoints, tensors, strict=True)
    ]


def _apply_all(
    operations: Sequence[Operation], tensors: list[Tensor], num_outputs: int
) -> list[Tensor]:
    for operation in operations:
        tensors = operation.apply(tensors, num_outputs)
    return tensors


def _indices(endpoints: Sequence[Endpoint]) -> set[str]:
    return set(unlisted_indices([endpoint.pattern for endpoint in endpoints]))


def _invert(operations: Sequence[Operation]) -> list[Operation]:
    return [operation.inverse() for operation in reversed(operations)]


@dataclass(frozen=True)
class Fill(MapEntry):
    """A target tensor without a source: a constant value or the identity matrix."""

    pattern: Pattern
    value: FillValue
    shape: Sequence[int] | None = None


@dataclass(frozen=True)
class Drop(MapEntry):
    """Source tensors that may be left unused."""

    pattern: Pattern
    export: FillValue | None = None
    """The value that an export writes."""
    omitted: bool = False
    """Whether an export writes nothing."""
    shape: Sequence[int] | None = None
    required_value: FillValue | None = None
    """The value that the tensor must have, because dropping another would lose data."""
    purpose: str = ""
    """What the tensors are for; empty for copies of others and what is computed again."""
    classes: Sequence[str] = ()
    """Classes of the other library that have the tensors."""


@dataclass(frozen=True)
class TensorMap:
    """A conversion from the tensors of another library to the parameters of a model."""

    file: str
    rules: Sequence[Rule] = ()
    fills: Sequence[Fill] = ()
    drops: Sequence[Drop] = ()
    prefix: str = ""
    endings: Mapping[str, str] = field(default_factory=dict)
    problems: Sequence[Problem] = ()
    """Why the map cannot be applied in this direction, whatever the tensors."""

    def canonical_names(
        self, names: Sequence[str], work: MatchingWork | None = None
    ) -> dict[str, str]:
        """Return each name as the rules write it, with the name in the file.

        Old endings are replaced. If no name in the file has the prefix, it is added to the names
        that then match a rule or a drop.
        """
        known = {}
        work = work or MatchingWork()
        available = set(names)
        lacks_prefix = self.prefix and not any(name.startswith(self.prefix) for name in names)
        for name in names:
            rule_name = name
            work.add(len(self.endings))
            for ending, replacement in self.endings.items():
                if name.endswith(ending):
                    rule_name = name.removesuffix(ending) + replacement
            if lacks_prefix and self._matches(self.prefix + rule_name, work):
                rule_name = self.prefix + rule_name
            is_taken = rule_name in known or (rule_name != name and rule_name in available)
            known[name if is_taken else rule_name] = name
        return known

    def _matches(self, name: str, work: MatchingWork) -> bool:
        sources = [endpoint.pattern for rule in self.rules for endpoint in rule.sources]
        patterns = [*sources, *(drop.pattern for drop in self.drops)]
        return any(pattern.match(name, work) is not None for pattern in patterns)

    def inverse(self) -> TensorMap:
        """Return the map from the model to the other library."""
        fills, problems = [], []
        for drop in self.drops:
            if drop.omitted:
                continue
            if drop.export is None:
                problems.append(
                    drop.problem(
                        f"'{drop.pattern}' is dropped without 'export'; set 'export: omit', or a "
                        "value and its 'shape'"
                    )
                )
            else:
                fills.append(
                    Fill(drop.pattern, drop.export, drop.shape, place=drop.place, path=drop.path)
                )
        return TensorMap(
            self.file,
            [rule.inverse() for rule in self.rules],
            fills,
            [
                Drop(fill.pattern, required_value=fill.value, place=fill.place, path=fill.path)
                for fill in self.fills
            ],
            problems=problems,
        )


def expand_endpoints(
    endpoints: Sequence[Endpoint],
    binding: Binding,
    names: Collection[str] = (),
    work: MatchingWork | None = None,
) -> list[tuple[str, Endpoint]]:
    """Return every tensor name of these endpoints, with its endpoint.

    An index that the binding does not contain stands for every one of `names` that matches.
    """
    return [
        (name, endpoint)
        for endpoint in endpoints
        for name in endpoint.pattern.expand(binding, names, work)
    ]
