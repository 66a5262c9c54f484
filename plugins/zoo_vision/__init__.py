"""Images and sketches as sequences, and what to call them."""

from collections.abc import Sequence

from zoo import Embedding, Model, hookimpl
from zoo_vision.classifier import Classifier
from zoo_vision.grid import Grid
from zoo_vision.patches import Patches


@hookimpl
def zoo_components() -> Sequence[type[Embedding] | type[Model]]:
    return [Patches, Grid, Classifier]
