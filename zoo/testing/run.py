"""Tries the laws on a component."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zoo.errors import MissingExtra, SpecError
from zoo.interfaces import Component
from zoo.registry.component_validation import validate_component
from zoo.testing.configuration import Configuration, configurations
from zoo.testing.law import Law, LawViolation, NotApplicable, Outcome
from zoo.testing.laws import LAWS


def check(component: type[Component], **params: Any) -> list[Outcome]:
    """Every law of the component's kind, on every small configuration; LawViolation if one fails.

    With parameters, only that configuration is tried.
    """
    outcomes = list(run_laws(component, **params))
    broken = [outcome for outcome in outcomes if outcome.status == "failed"]
    if broken:
        raise LawViolation(broken)
    return outcomes


def run_laws(component: type[Component], **params: Any) -> Iterator[Outcome]:
    """The outcomes, failures too, as they come."""
    fault = validate_component(component)
    if fault:
        yield Outcome(
            getattr(component, "__name__", str(component)), "", "contract", "failed", fault
        )
        return
    for index, config in enumerate(configurations(component, **params)):
        refusal = rejection_reason(config)
        if refusal and index > 0:
            yield Outcome(component.name, config.label, "refused", "skipped", refusal)
            continue
        for law in LAWS[component.kind]:
            yield run_law(law, config)


def run_law(law: Law, config: Configuration) -> Outcome:
    """One law on one configuration."""

    def outcome(status: Any, message: str = "") -> Outcome:
        return Outcome(config.cls.name, config.label, law.name, status, message)

    try:
        law.run(config)
    except NotApplicable as reason:
        return outcome("skipped", str(reason))
    except AssertionError as error:
        return outcome("failed", _one_line(error) or law.statement)
    except Exception as error:
        if isinstance(error.__cause__, MissingExtra):
            return outcome("skipped", str(error.__cause__))
        return outcome("failed", f"{type(error).__name__}: {_one_line(error)}")
    return outcome("passed")


def rejection_reason(config: Configuration) -> str | None:
    """Why a configuration is no valid one: components may refuse a combination, with a reason."""
    try:
        config.build()
    except SpecError as error:
        return str(error)
    except Exception:
        return None  # no refusal but a fault, for the laws to report
    return None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
