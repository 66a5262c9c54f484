"""All that exists for speed: kernels, captured steps, fused and packed paths.

One folder per plugin it accelerates, and one each for the rooms of the core.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from zoo.plugin import Acceleration, hookimpl

_ATTENTION = ("zoo_alignment", "zoo_bahdanau", "zoo_luong", "zoo_transformer")
FOLDERS: dict[str, tuple[str, ...]] = {
    "attention": _ATTENTION,
    "ctc": ("zoo_ctc",),
    "draw": ("zoo_draw",),
    "gat": ("zoo_gat", *_ATTENTION),
    "generation": (),
    "location": ("zoo_location",),
    "memory": ("zoo_memory",),
    "objectives": ("zoo_objectives",),
    "recurrent": ("zoo_recurrent", "zoo_tokens", *_ATTENTION),
    "sampling": ("zoo_sampling",),
    "seq2seq": ("zoo_seq2seq",),
    "tokens": ("zoo_tokens",),
    "training": (),
    "transformer": ("zoo_positions", "zoo_tokens", *_ATTENTION),
    "word2vec": ("zoo_tokens", "zoo_word2vec"),
}
"""Folders, and the plugins they need; a folder is not imported if one is not installed."""


@hookimpl
def zoo_components() -> Sequence[type[Acceleration]]:
    return [
        acceleration
        for folder, plugins in FOLDERS.items()
        if all(find_spec(plugin) for plugin in plugins)
        for acceleration in import_module(f"zoo_fast.{folder}").ACCELERATIONS
    ]
