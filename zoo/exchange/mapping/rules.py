"""A map as rules: which tensors become which, by which operations, and the same the other way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from zoo.errors import Place, Problem, ZooError
from zoo.exchange.mapping.operation import Operation
from zoo.exchange.mapping.pattern import Binding, Pattern


@dataclass(frozen=True)
class Endpoint:
    """Names at one end of a rule, and what is done to each tensor there alone."""

    pattern: Pattern
    do: Sequence[Operation] = ()

    def reversed(self) -> Endpoint:
        return Endpoint(self.pattern, _reverse_operations(self.do))


@dataclass(frozen=True)
class Rule:
    """Tensors that become others: each is treated alone, then all together, then each again."""

    sources: Sequence[Endpoint]
    targets: Sequence[Endpoint]
    do: Sequence[Operation] = ()
    place: Place | None = None
    path: str = ""
    unsupported_reason: str = ""
    """Why the rule cannot be used in this direction."""

    @property
    def shared(self) -> set[str]:
        """The open places that both sides speak of; other choices stand for all their words."""
        before, after = (
            {name for end in side for name in end.pattern.names}
            for side in (self.sources, self.targets)
        )
        return before & after

    def run(
        self, tensors: Sequence[Tensor], sources: Sequence[Endpoint], targets: Sequence[Endpoint]
    ) -> list[Tensor]:
        """The targets' tensors; the ends are given tensor by tensor."""
        num_outputs = len(targets)
        taken = [_apply_all(end.do, [t], 1)[0] for end, t in zip(sources, tensors, strict=True)]
        made = _apply_all(self.do, taken, num_outputs)
        if len(made) != num_outputs:
            raise ZooError(f"the rule ends with {len(made)} tensors, but names {num_outputs}")
        return [_apply_all(end.do, [t], 1)[0] for end, t in zip(targets, made, strict=True)]

    def reversed(self) -> Rule:
        try:
            return replace(
                self,
                sources=[end.reversed() for end in self.targets],
                targets=[end.reversed() for end in self.sources],
                do=_reverse_operations(self.do),
            )
        except ZooError as error:
            return replace(
                self,
                sources=self.targets,
                targets=self.sources,
                do=(),
                unsupported_reason=str(error),
            )

    def steps(self) -> list[str]:
        """The operations, for people."""
        alone = [step for end in self.sources for step in end.do]
        after = [step for end in self.targets for step in end.do]
        return [str(step) for step in (*alone, *self.do, *after)]

    def problem(self, message: str) -> Problem:
        return Problem(message, self.path, self.place)


def _apply_all(
    operations: Sequence[Operation], tensors: list[Tensor], num_outputs: int
) -> list[Tensor]:
    for operation in operations:
        tensors = operation.apply(tensors, num_outputs)
    return tensors


def _reverse_operations(operations: Sequence[Operation]) -> list[Operation]:
    return [operation.reverse() for operation in reversed(operations)]


@dataclass(frozen=True)
class Fill:
    """A tensor of one number that the other side does not have."""

    pattern: Pattern
    value: float
    place: Place | None = None
    path: str = ""
    shape: Sequence[int] | None = None

    def problem(self, message: str) -> Problem:
        return Problem(message, self.path, self.place)


@dataclass(frozen=True)
class Drop:
    """Tensors that may go unused."""

    pattern: Pattern
    place: Place | None = None
    path: str = ""
    export: str | float | None = None
    """What an export puts there: a number, 'omit' for nothing, None if nobody said."""
    shape: Sequence[int] | None = None
    required_value: float | None = None
    """The number all of it must be, for nothing to be lost."""

    def problem(self, message: str) -> Problem:
        return Problem(message, self.path, self.place)


@dataclass(frozen=True)
class TensorMap:
    """How the tensors of another library become those of a model."""

    file: str
    rules: Sequence[Rule] = ()
    fills: Sequence[Fill] = ()
    drops: Sequence[Drop] = ()
    prefix: str = ""
    endings: Mapping[str, str] = field(default_factory=dict)
    problems: Sequence[Problem] = ()
    """What an export cannot do, whatever the tensors."""

    def canonical_names(self, names: Sequence[str]) -> dict[str, str]:
        """The names as the rules write them, each with the one in the file."""
        known = {}
        bare = self.prefix and not any(name.startswith(self.prefix) for name in names)
        for name in names:
            rule_name = name
            for ending, usual in self.endings.items():
                if name.endswith(ending):
                    rule_name = name.removesuffix(ending) + usual
            if bare and self._matches(self.prefix + rule_name):
                rule_name = self.prefix + rule_name
            taken = rule_name in known or (rule_name != name and rule_name in names)
            known[name if taken else rule_name] = name
        return known

    def _matches(self, name: str) -> bool:
        ends = [end.pattern for rule in self.rules for end in rule.sources]
        patterns = [*ends, *(drop.pattern for drop in self.drops)]
        return any(pattern.match(name) is not None for pattern in patterns)

    def reversed(self) -> TensorMap:
        """The same map from a model to the other library."""
        fills, problems = [], []
        for drop in self.drops:
            if drop.export is None:
                problems.append(
                    drop.problem(
                        f"'{drop.pattern}' is dropped, and nothing says what an export should "
                        "put there: 'export: omit', or a number with its 'shape'"
                    )
                )
            elif not isinstance(drop.export, str):
                fills.append(Fill(drop.pattern, drop.export, drop.place, drop.path, drop.shape))
        return TensorMap(
            self.file,
            [rule.reversed() for rule in self.rules],
            fills,
            [Drop(f.pattern, f.place, f.path, required_value=f.value) for f in self.fills],
            problems=problems,
        )


def expand(ends: Sequence[Endpoint], binding: Binding) -> list[tuple[str, Endpoint]]:
    """Every name at these ends, with the end it belongs to."""
    return [(name, end) for end in ends for name in end.pattern.expand(binding)]
