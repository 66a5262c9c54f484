"""Converts what adapters add to weights from the names and layouts of one library to another's.

A map says how whole weights are converted: copied, transposed, split, joined or reordered. A matrix
of low rank, W = L R, is converted by its factors, so that its rank stays the same: a step that
only changes rows changes L, one that only changes columns changes R. Weights that are joined to one
and have no factor in common give the sum of their ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.interfaces.tensors import TensorMeta
from zoo_exchange.mapping import TensorJob, TensorPlan

_WEIGHT = ".weight"
_TOLERANCE = 1e-9
Factors = tuple[Tensor, Tensor]
"""Two factors of a weight: L [rows, r] and R [r, columns]."""
_Choice = Callable[[Factors, Factors], Factors]

_CHOICES: tuple[tuple[bool, _Choice], ...] = (
    (False, lambda given, probes: (probes[0][:, : given[0].shape[1]], given[1])),
    (False, lambda given, probes: (given[0], probes[1][: given[0].shape[1]])),
    (True, lambda given, probes: (probes[1][:, : given[0].shape[1]], given[0].T)),
    (True, lambda given, probes: (given[1].T, probes[0][: given[0].shape[1]])),
)
"""Whether the weight is transposed, and the factors of the converted weight. `probes` are the
converted products of L with unit rows, and of unit columns with R."""


class _NoCommonFactor(ZooError):
    """Raised for factors whose converted product is not the product of converted factors."""


@dataclass(frozen=True)
class PlanConverter:
    """Converts low-rank matrices and vectors of modules by the plan for their weights.

    Args:
        plan: converts the weights.
        sources: shape and dtype of each tensor that the plan converts.
        tables: names of the modules, on the side of the zoo, that are embedding tables.
        to_zoo: whether the targets of the plan are those of the zoo.
        prefix: the start of the targets' names that is left out, such as ``bert.``.
    """

    plan: TensorPlan
    sources: Mapping[str, TensorMeta]
    tables: frozenset[str]
    to_zoo: bool
    prefix: str = ""
    transposed: set[str] = field(default_factory=set)
    """Modules of the other library, converted so far, whose weight is [inputs, outputs]."""

    def low_rank(self, factors: Mapping[str, Factors]) -> dict[str, Factors]:
        """Convert A and B of modules by name; B A is added to the weight of a linear layer, and
        its transpose to a table. Modules that become one without a factor in common give the sum of
        their ranks.

        Raises:
            ZooError: if the map cannot be applied to factors.
        """
        found: dict[str, Factors] = {}
        for job in self._jobs(factors):
            given = {s: factors[_module(s)] for s in job.sources if _module(s) in factors}
            if len({A.shape[0] for A, _ in given.values()}) == 1:
                try:
                    found |= self._convert_together(job, given)
                    continue
                except _NoCommonFactor:
                    pass
            # The map is linear: its result is the sum of those of each module alone.
            for name, pair in given.items():
                for target, (A, B) in self._convert_together(job, {name: pair}).items():
                    before = found.get(target, (A[:0], B[:, :0]))
                    found[target] = torch.cat([before[0], A]), torch.cat([before[1], B], dim=1)
        return found

    def _convert_together(self, job: TensorJob, given: Mapping[str, Factors]) -> dict[str, Factors]:
        """Convert A and B of one rank, by the names of their weights; return them by module."""
        found: dict[str, Factors] = {}
        rank = next(iter(given.values()))[0].shape[0]
        kinds = self._choose(job, rank)
        for target, (choice, flip_source, flip_target) in kinds.items():
            sides = {s: _sides(pair, flip_source) for s, pair in given.items()}
            L, R = self._convert(job, target, sides, rank, choice)
            name = _module(target).removeprefix(self.prefix)
            found[name] = (L.T, R.T) if flip_target else (R, L)
            if flip_source != flip_target:
                self.transposed.update(given if self.to_zoo else [target])
        return found

    def outputs(
        self, vectors: Mapping[str, Tensor], *, missing: float | None = None
    ) -> dict[str, Tensor]:
        """Convert vectors with a value for each output of modules by name.

        Args:
            missing: the values of a module without a vector that becomes one with others; None
                rejects it.
        """
        if missing is not None:
            vectors = {**self._filled(vectors, missing), **vectors}
        self._require_whole_weights(vectors)
        pairs = self.low_rank(
            {n: (torch.ones(1, self._width(n, len(v))), v[:, None]) for n, v in vectors.items()}
        )
        return {name: B[:, 0] * _constant(name, A) for name, (A, B) in pairs.items()}

    def inputs(self, vectors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Convert vectors with a value for each input of modules by name."""
        self._require_whole_weights(vectors)
        pairs = self.low_rank(
            {n: (v[None], torch.ones(self._width(n, len(v)), 1)) for n, v in vectors.items()}
        )
        return {name: A[0] * _constant(name, B) for name, (A, B) in pairs.items()}

    def whole(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Convert whole tensors by name.

        Raises:
            ZooError: if a tensor is converted together with one that is not given.
        """
        found: dict[str, Tensor] = {}
        used: set[str] = set()
        for job in self.plan.jobs:
            if set(job.sources) & tensors.keys():
                missing = [name for name in job.sources if name not in tensors]
                if missing:
                    raise ZooError(f"{job.sources[0]} is converted together with {missing[0]}")
                for name, tensor in job.run(tensors.__getitem__):
                    found[name.removeprefix(self.prefix)] = tensor
                used.update(job.sources)
        _check_known(set(tensors) - used)
        return found

    def _filled(self, vectors: Mapping[str, Tensor], value: float) -> dict[str, Tensor]:
        """Return vectors of one value for the modules that become one with those that are given."""
        return {
            _module(name): torch.full((self.sources[name].shape[0],), value)
            for job in self._jobs(vectors)
            for name in job.sources
        }

    def _width(self, name: str, other: int) -> int:
        """Return the number of inputs of a module, given that of its outputs, or the reverse."""
        _check_known({f"{name}{_WEIGHT}"} - self.sources.keys())
        shape = self.sources[f"{name}{_WEIGHT}"].shape
        if len(shape) != 2 or other not in shape:
            raise ZooError(
                f"{name} has a weight of shape {list(shape)}, which {other} does not fit"
            )
        return shape[0] * shape[1] // other

    def _require_whole_weights(self, modules: Mapping[str, Tensor]) -> None:
        """Raise ZooError if a weight of the other library is adapted in part."""
        for job in self._jobs(modules):
            missing = [name for name in job.sources if _module(name) not in modules]
            if missing:
                raise ZooError(
                    f"{', '.join(job.sources)} are one tensor in the other library, but "
                    f"{_module(missing[0])} has no adapter; train adapters of all of them, or of "
                    "none"
                )

    def _jobs(self, modules: Collection[str]) -> Iterator[TensorJob]:
        names = {f"{name}{_WEIGHT}" for name in modules}
        used: set[str] = set()
        for job in self.plan.jobs:
            if names & set(job.sources):
                used |= names & set(job.sources)
                yield job
        _check_known(names - used)

    def _choose(self, job: TensorJob, rank: int) -> dict[str, tuple[_Choice, bool, bool]]:
        """Return how the factors of each target are found, and whether the weight of the sources
        and of the target is B A transposed; found with random factors."""
        generator = torch.Generator().manual_seed(0)
        sides: dict[str, Factors] = {}
        right: dict[tuple[int, ...], Tensor] = {}
        left: dict[tuple[int, ...], Tensor] = {}
        for name in job.sources:
            shape = self.sources[name].shape
            if len(shape) != 2 or rank > min(shape):
                raise ZooError(
                    f"{name} has the shape {list(shape)}, of which a matrix of rank {rank} cannot "
                    "be converted by its factors"
                )
            rows, columns = shape
            # Tensors that are joined share one of the factors.
            shared = right.setdefault((rank, columns), _random(rank, columns, generator))
            sides[name] = (_random(rows, rank, generator), shared)
            left.setdefault((rows, rank), sides[name][0])
        other = {
            name: (left[L.shape[0], rank], _random(rank, R.shape[1], generator))
            for name, (L, R) in sides.items()
        }
        chosen = {}
        for target in job.targets:
            for transposed, choice in _CHOICES:
                if any(
                    self._is_exact(job, target, pairs, rank, choice) for pairs in (sides, other)
                ):
                    chosen[target] = (choice, *self._layouts(job, target, transposed))
                    break
            else:
                raise ZooError(
                    f"{', '.join(job.sources)}: the map changes rows and columns of the weight, so "
                    "a matrix of low rank cannot be converted by its factors"
                )
        return chosen

    def _layouts(self, job: TensorJob, target: str, transposed: bool) -> tuple[bool, bool]:
        ours = target if self.to_zoo else job.sources[0]
        is_table = _module(ours) in self.tables
        theirs = is_table != transposed
        return (theirs, is_table) if self.to_zoo else (is_table, theirs)

    def _is_exact(
        self, job: TensorJob, target: str, sides: Mapping[str, Factors], rank: int, choice: _Choice
    ) -> bool:
        try:
            self._convert(job, target, sides, rank, choice)
        except ZooError:
            return False
        return True

    def _convert(
        self, job: TensorJob, target: str, sides: Mapping[str, Factors], rank: int, choice: _Choice
    ) -> Factors:
        """Return the factors of a target; raise ZooError if their product is another matrix."""
        doubles = {name: (L.double(), R.double()) for name, (L, R) in sides.items()}

        def run(product: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
            read = {
                name: product(*doubles[name])
                if name in doubles
                else torch.zeros(self.sources[name].shape, dtype=torch.float64)
                for name in job.sources
            }
            outputs = job.convert([read[name] for name in job.sources])
            return dict(zip(job.targets, outputs, strict=True))[target].double()

        complete = run(lambda L, R: L @ R)
        probes = (
            run(lambda L, R: L @ torch.eye(rank, R.shape[1], dtype=torch.float64)),
            run(lambda L, R: torch.eye(L.shape[0], rank, dtype=torch.float64) @ R),
        )
        dtype = next(iter(sides.values()))[0].dtype
        L, R = choice(next(iter(doubles.values())), probes)
        fits = L.shape[0] == complete.shape[0] and R.shape[1] == complete.shape[1]
        error = (L @ R - complete).abs().max() if fits and complete.numel() else torch.tensor(0.0)
        if not fits or error > _TOLERANCE * complete.abs().max().clamp(min=1):
            raise _NoCommonFactor(
                f"{', '.join(job.sources)} are one tensor in the other library, but their adapters "
                "have no factor in common"
            )
        return L.to(dtype), R.to(dtype)


def _random(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64)


def _sides(pair: Factors, flipped: bool) -> Factors:
    """Return L and R of the weight of a module with the factors A and B."""
    A, B = pair
    return (A.T, B.T) if flipped else (B, A)


def _constant(name: str, values: Tensor) -> Tensor:
    """Return the only value of a vector; raise ZooError if there are several."""
    first = values.flatten()[0]
    if not torch.allclose(values, first.expand_as(values)):
        raise ZooError(f"{name}: the map scales parts of the weight, so a vector does not fit it")
    return first


def _module(weight: str) -> str:
    return weight.removesuffix(_WEIGHT)


def _check_known(names: set[str]) -> None:
    if names:
        raise ZooError(f"the map of the base has no tensor '{sorted(names)[0]}'")
