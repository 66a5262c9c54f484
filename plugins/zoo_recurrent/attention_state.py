"""Where an attention stands, kept in a decoder's state beside the cells' own tensors."""

from collections.abc import Mapping

from torch import Tensor

_PREFIX = "look."


def add_prefix(look: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """An attention's memory, named so that it can lie among a decoder's tensors."""
    return {_PREFIX + name: tensor for name, tensor in look.items()}


def split_state(
    per_hypothesis: Mapping[str, Tensor],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """A decoder's tensors: those of its cells, and those of its attention."""
    cells = {name: t for name, t in per_hypothesis.items() if not name.startswith(_PREFIX)}
    look = {
        name.removeprefix(_PREFIX): t for name, t in per_hypothesis.items() if name not in cells
    }
    return cells, look
