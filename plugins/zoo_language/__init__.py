"""Models of one language: those that go on, and those that fill in."""

from collections.abc import Sequence

from zoo import Model, hookimpl
from zoo_language.language_model import LanguageModel
from zoo_language.masked_lm import MaskedLM


@hookimpl
def zoo_components() -> Sequence[type[Model]]:
    return [LanguageModel, MaskedLM]
