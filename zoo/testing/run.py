"""Tries the laws on a component."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zoo.errors import MissingExtra, SpecError
from zoo.interfaces import Component
from zoo.registry.discovery import fault_of
from zoo.testing.law import Law, LawBroken, NotApplicable, Outcome
from zoo.testing.laws import LAWS
from zoo.testing.subject import Subject, subjects


def check(component: type[Component], **params: Any) -> list[Outcome]:
    """Every law of the component's kind, on every small configuration; LawBroken if one fails.

    With parameters, only that configuration is tried.
    """
    outcomes = list(examine(component, **params))
    broken = [outcome for outcome in outcomes if outcome.status == "failed"]
    if broken:
        raise LawBroken(broken)
    return outcomes


def examine(component: type[Component], **params: Any) -> Iterator[Outcome]:
    """The outcomes, failures too, as they come."""
    fault = fault_of(component)
    if fault:
        yield Outcome(
            getattr(component, "__name__", str(component)), "", "contract", "failed", fault
        )
        return
    for index, subject in enumerate(subjects(component, **params)):
        refusal = refusal_of(subject)
        if refusal and index > 0:
            yield Outcome(component.name, subject.label, "refused", "skipped", refusal)
            continue
        for law in LAWS[component.kind]:
            yield attempt(law, subject)


def attempt(law: Law, subject: Subject) -> Outcome:
    """One law on one configuration."""

    def outcome(status: Any, message: str = "") -> Outcome:
        return Outcome(subject.cls.name, subject.label, law.name, status, message)

    try:
        law.run(subject)
    except NotApplicable as reason:
        return outcome("skipped", str(reason))
    except AssertionError as error:
        return outcome("failed", _first_lines(error) or law.statement)
    except Exception as error:
        if isinstance(error.__cause__, MissingExtra):
            return outcome("skipped", str(error.__cause__))
        return outcome("failed", f"{type(error).__name__}: {_first_lines(error)}")
    return outcome("passed")


def refusal_of(subject: Subject) -> str | None:
    """Why a configuration is no valid one: components may refuse a combination, with a reason."""
    try:
        subject.part()
    except SpecError as error:
        return str(error)
    except Exception:
        return None  # no refusal but a fault, for the laws to report
    return None


def _first_lines(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
