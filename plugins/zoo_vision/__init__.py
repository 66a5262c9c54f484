"""Embeddings and backbones for images, a classifier and a regressor."""

from collections.abc import Sequence

from zoo import Model
from zoo.plugin import Backbone, Embedding, Encoder, hookimpl
from zoo_vision.classifier import Classifier
from zoo_vision.columns import Columns
from zoo_vision.convolution import Convolution
from zoo_vision.grid import Grid
from zoo_vision.identity import Identity
from zoo_vision.one_tower import OneTower
from zoo_vision.patches import Patches
from zoo_vision.regions import Regions
from zoo_vision.regressor import Regressor
from zoo_vision.torchvision import Torchvision
from zoo_vision.two_towers import TwoTowers


@hookimpl
def zoo_components() -> Sequence[type[Backbone] | type[Embedding] | type[Encoder] | type[Model]]:
    models: list[type[Model]] = [Classifier, Regressor, OneTower, TwoTowers]
    return [Patches, Grid, Convolution, Torchvision, Regions, Columns, Identity, *models]
