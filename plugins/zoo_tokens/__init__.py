"""Token embedding."""

from collections.abc import Sequence

from zoo.plugin import Embedding, hookimpl
from zoo_tokens.token import Token


@hookimpl
def zoo_components() -> Sequence[type[Embedding]]:
    return [Token]
