"""Laws of parts."""

from __future__ import annotations

from zoo.interfaces.signature import parameters
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law


def parent_values(config: Configuration) -> None:
    """It requires no value from the parent that the class it extends does not take."""
    base = config.cls.base_classes()[0]  # type: ignore[attr-defined]
    passed = {p.name for p in parameters(base) if p.from_parent}
    needed = {p.name for p in parameters(config.cls) if p.from_parent and p.required}
    extra = ", ".join(sorted(needed - passed))
    assert not extra, f"it requires {extra} from the parent, which {base.__name__} does not take"


LAWS = (Law("parent-values", parent_values, per_class=True),)
