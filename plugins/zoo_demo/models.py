"""The models and inputs of the demo, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zoo.errors import MissingExtra, RegistryError, ZooError
from zoo.hub.models import load
from zoo.interfaces import Model

TRANSLATORS: Mapping[str, str] = {
    "Transformer": "tatoeba-por-eng-transformer",
    "Bahdanau": "tatoeba-por-eng-bahdanau",
}
READER = "ram-mnist"
# None of them is in the training data.
SENTENCES = (
    "A casa branca perto do rio foi vendida na semana passada.",
    "Onde fica a estação?",
    "Ela comprou um vestido azul para a festa de amanhã.",
    "As crianças brincavam no jardim enquanto a mãe preparava o jantar.",
)


@dataclass(frozen=True)
class DemoModels:
    """The translators by label, and the model that recognises digits."""

    translators: Mapping[str, Model]
    reader: Model


def load_models(device: str = "cpu") -> DemoModels:
    """Load the models; raise ZooError with a way to continue if one is not installed."""
    try:
        translators = {label: load(name, device=device) for label, name in TRANSLATORS.items()}
        return DemoModels(translators, load(READER, device=device))
    except (MissingExtra, RegistryError) as error:
        raise ZooError(
            f"the demo needs shipped weights ('zoo demo --train' needs none): {error}"
        ) from None
