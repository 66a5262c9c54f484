"""What a law is, and what came of trying it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from zoo.testing.configuration import Configuration


@dataclass(frozen=True)
class Law:
    """A statement that every component of a kind must satisfy; ``run`` asserts it."""

    name: str
    run: Callable[[Configuration], None]

    @property
    def statement(self) -> str:
        return " ".join((self.run.__doc__ or "").split())


class NotApplicable(Exception):
    """Raised by a law that says nothing about this component, or cannot be tried here."""


@dataclass(frozen=True)
class Outcome:
    """One law on one configuration of one component."""

    component: str
    configuration: str
    law: str
    status: Literal["passed", "failed", "skipped"]
    message: str = ""


class LawViolation(AssertionError):
    """A component breaks laws of its kind."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = list(outcomes)
        lines = [f"  {o.law} [{o.configuration or 'defaults'}]: {o.message}" for o in outcomes]
        super().__init__(f"{outcomes[0].component} breaks:\n" + "\n".join(lines))
