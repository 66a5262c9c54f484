"""The tokenizers of a recipe."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from zoo.data.reader import iterate_values
from zoo.data.special_tokens import special_ids
from zoo.data.tokenizer_training import train_on_texts
from zoo.files import has_recorded_hash, record_hash, remove_link
from zoo.interfaces import Dataset, Model
from zoo.spec.composition import build_on_meta
from zoo.spec.spec import load_spec
from zoo.spec.training import Training
from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.recipe_schema import TokenizerRecipe


def train_tokenizers(recipe: RecipeFile, folder: Path) -> list[str]:
    """Train the tokenizers of a recipe that are not in the folder yet.

    Returns:
        Overrides of the spec that set them.
    """
    overrides: list[str] = []
    if not recipe.recipe.tokenizers:
        return overrides
    assert recipe.spec is not None
    spec = load_spec(recipe.spec)
    assert spec.sections.train is not None
    training: Training = spec.sections.train.build()
    model: Model = build_on_meta(spec).part
    for name, options in recipe.recipe.tokenizers.items():
        vocabulary = {key: _vocabulary(model, key) for key in options.keys}
        settings = [vars(options), spec.resolve()["train"]["data"], vocabulary]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        file = folder / f"{name}-{digest[:8]}.json"
        if not file.is_file() or file.is_symlink() or has_recorded_hash(file) is False:
            remove_link(file)
            _train(options, training.data.build(), model, file)
            record_hash(file)
        for key in options.keys:
            overrides.append(f"preprocessing.{key}.tokenizer={json.dumps(str(file))}")
    return overrides


def _vocabulary(model: Model, key: str) -> list[Any]:
    """Return what a tokenizer of a key depends on: vocabulary size and special tokens."""
    schema = (model.batch_schema() or {}).get(key)
    return [schema.below if schema else None, special_ids(model, key)]


def _train(options: TokenizerRecipe, dataset: Dataset, model: Model, file: Path) -> None:
    examples = dataset.open()

    def texts() -> Iterator[str]:
        for key in options.keys:
            values = iterate_values(examples, key, skip=True)
            for value in itertools.islice(values, options.limit):
                yield from _strings(value)

    file.parent.mkdir(parents=True, exist_ok=True)
    train_on_texts(
        texts,
        file,
        type=options.method,
        min_count=options.min_count,
        lowercase=options.lowercase,
        model=model,
        keys=options.keys,
    )


def _strings(value: Any) -> Sequence[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value]
