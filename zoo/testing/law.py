"""Laws and their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Law:
    """A property of every component of a kind, or of every importer; ``run`` asserts it.

    ``run`` takes a `Configuration` of a component, or an `ImporterConfiguration`.
    """

    name: str
    run: Callable[[Any], None]
    per_class: bool = False
    """Whether the law depends on the class only and runs on the first configuration only."""

    @property
    def statement(self) -> str:
        return " ".join((self.run.__doc__ or "").split())


class NotApplicable(Exception):
    """Raised by a law that does not apply to a component or cannot run on this machine."""


@dataclass(frozen=True)
class Outcome:
    """Result of one law on one configuration of a component."""

    component: str
    configuration: str
    law: str
    status: Literal["passed", "failed", "skipped"]
    message: str = ""


class LawViolation(AssertionError):
    """Raised by `zoo.testing.check` for a component that violates laws of its kind."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = list(outcomes)
        lines = [f"  {o.law} [{o.configuration or 'defaults'}]: {o.message}" for o in outcomes]
        super().__init__(f"{outcomes[0].component} violates:\n" + "\n".join(lines))
