"""Interface of variants of concrete classes."""

from __future__ import annotations

from typing import Any, ClassVar

from zoo.interfaces.component import Component
from zoo.interfaces.signature import parameters


class Part(Component):
    """Makes a subclass of a slot's class selectable in that slot.

    A slot such as ``Blueprint[Attention]`` names a class instead of a kind. Without ``type`` a spec
    sets the parameters of that class. A plugin can register a subclass of it that also inherits
    from `Part`; ``type`` with its name selects it in every slot of the class::

        class CosineAttention(Attention, Part):
            name = "cosine-attention"

    From the parent: what the class of the slot takes.

    Laws:
        parent values: it requires no value from the parent that the class of the slot does not
        take.
    """

    kind: ClassVar[str] = "part"

    @classmethod
    def base_classes(cls) -> list[type[Any]]:
        """Return the classes in whose slots this part can be used, nearest first."""
        shared = {*Component.__mro__, Part}
        return [
            base
            for base in cls.__mro__[1:]
            if base not in shared and not issubclass(base, Part) and _is_configurable(base)
        ]


def _is_configurable(cls: type[Any]) -> bool:
    """Return whether a class of the zoo or a plugin can be the class of a slot."""
    if cls.__module__.partition(".")[0] in ("torch", "abc", "typing", "builtins"):
        return False
    try:
        parameters(cls)
    except TypeError:
        return False
    return True
