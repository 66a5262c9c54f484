"""What a fast path must know of a part, by the class of the part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from zoo.acceleration import plain_class

P = ParamSpec("P")
R = TypeVar("R")


class ByClass(Generic[P, R]):
    """A function of a part, with an implementation for each class.

    As `functools.singledispatch`, but for the exact class: a subclass can compute something else,
    so the result for it is None, as for any unknown class.

    Args:
        describe: a function with the signature and the docstring; it is not called.
    """

    def __init__(self, describe: Callable[P, R | None]) -> None:
        self.__doc__ = describe.__doc__
        self._functions: dict[type[Any], Callable[P, R | None]] = {}

    def register(self, cls: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator for the implementation of a class."""

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self._functions[cls] = function
            return function

        return add

    def knows(self, part: Any) -> bool:
        """Whether there is an implementation for the class of a part."""
        return plain_class(part) in self._functions

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        function = self._functions.get(plain_class(args[0]))
        return None if function is None else function(*args, **kwargs)
