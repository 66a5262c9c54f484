"""Interface of accelerations: faster computations of what a class computes."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from zoo.interfaces.component import Component


class Declined(NamedTuple):
    """Returned by a method of an acceleration that does not apply to a call."""

    reason: str


@dataclass(frozen=True)
class Call:
    """A call of a method, for the laws of accelerations.

    Args:
        target: the object, not accelerated.
        arguments: positional arguments of the method.
        options: keyword arguments of the method.
        method: name of the method.
    """

    target: Any
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    method: str = "forward"


class Acceleration(Component, ABC):
    """Computes methods of a class faster, with the same results.

    An acceleration defines the methods it replaces under their own names. Each takes the object,
    then the arguments of the method, and returns what the method returns, or `Declined`.
    `zoo.accelerate` creates one acceleration per object, so it can keep values such as captured
    graphs; the object is not an attribute of it. The method of the class itself is the reference
    path: ``reference(target, "forward")``.

    The dispatcher runs the reference path if hooks or recorders are attached to parts of the
    object, if a part was replaced by one of an unknown package, and as the class attributes
    declare, which are read when the first object of a class is accelerated; `why_not` states all
    other conditions. Other methods begin with ``_``.

    Laws:
        same results: outputs and gradients of `cases` equal those of the reference path in each
        dtype;
        unchanged arguments: it does not overwrite arguments that the reference path keeps;
        plain copies: saved, pickled and copied objects are not accelerated;
        reference conditions: with hooks, recorders, compilation, and with autocast or gradients if
        they are not declared, the reference path runs;
        same signature: the methods take the arguments of the methods they replace;
        given device: `why_not` of a module on the meta device is that of the module with values.
    """

    kind: ClassVar[str] = "acceleration"
    serves: ClassVar[type[Any]]
    """The class; objects of a subclass use the reference path."""
    order: ClassVar[int] = 0
    """Accelerations of one class and method are tried in this order, the lowest first."""
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32,)
    """The dtypes of `cases` for which the laws compare results."""
    differentiable: ClassVar[bool] = False
    """Whether it can be used while gradients are enabled."""
    supports_autocast: ClassVar[bool] = False
    """Whether it can be used while autocast is enabled."""
    traceable: ClassVar[bool] = False
    """Whether torch.compile can trace it, because it consists of operators of torch."""
    calls_parts: ClassVar[bool] = False
    """Whether it calls the parts of the object as modules, so that hooks and recorders of the parts
    work."""
    called_parts: ClassVar[tuple[str, ...]] = ()
    """Names of parts that it calls as modules, so that hooks of these, such as those of adapters,
    work; hooks of other parts need the reference path."""

    packages: frozenset[str] = frozenset()
    """Set by `zoo.accelerate`: the packages whose classes it knows, which are torch, the zoo and
    those of its own distribution and of the class it serves. With a part of another package inside
    the object, the reference path runs."""

    def why_not(self, target: Any, device: torch.device) -> str | None:
        """Return why it does not apply to an object on a device, or None if it does.

        Conditions on the arguments of a call are tested in the method, which returns `Declined`.
        """
        return None

    @classmethod
    def prepare(cls, device: torch.device) -> None:
        """Import and read what the first call on a device needs.

        Called once in a process, in a thread of its own, when `load` or `compose` begins to put a
        model with an object of the class on the device.
        """
        return

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        """Yield calls on the default device for the laws: usual and odd shapes, one query, one key,
        masked rows. By default there are none: `zoo.testing.check` raises, and other runs of the
        laws skip those that need them."""
        yield from ()

    def tensors(self, output: Any) -> list[Tensor]:
        """Return the tensors of an output that the laws compare."""
        return [leaf for leaf in pytree.tree_leaves(output) if isinstance(leaf, Tensor)]

    @classmethod
    def methods(cls) -> tuple[str, ...]:
        """Return the names of the methods it replaces."""
        own = {
            name for base in cls.__mro__ if base not in Acceleration.__mro__ for name in vars(base)
        }
        return tuple(
            name
            for name in sorted(own)
            if callable(getattr(cls, name))
            and hasattr(cls.serves, name)
            # A class always has `__call__`, that of its metaclass.
            and (name == "__call__" or not (name.startswith("_") or hasattr(Acceleration, name)))
        )
