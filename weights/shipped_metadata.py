"""What a shipped model contains besides its weights: licences, tokenizers, preprocessing."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import zoo
from zoo.data.preprocessing import fit_parameters
from zoo.errors import ZooError
from zoo.hub.catalogue import CatalogueEntry
from zoo_lab.reproduce.recipe_file import RecipeFile

ROOT = Path(__file__).parents[1]
CC_URL = "https://creativecommons.org/licenses/by-sa/4.0/legalcode"


def fold_case(tokenizer: str) -> str:
    """Return a tokenizer that reads letters of the other case, if it has letters of one case only.

    A tokenizer with a normaliser of its own is not changed.
    """
    data = json.loads(tokenizer)
    letters = [token for token in data["model"]["vocab"] if len(token) == 1]
    known = {letter.swapcase(): letter for letter in letters if letter.swapcase() != letter}
    one_case = {letter.isupper() for letter in known} in ({True}, {False})
    if data["normalizer"] is not None or data["model"]["type"] != "WordLevel" or not one_case:
        return tokenizer
    rules = [
        {"type": "Replace", "pattern": {"String": other}, "content": letter}
        for other, letter in known.items()
    ]
    data["normalizer"] = {"type": "Sequence", "normalizers": rules}
    return json.dumps(data, ensure_ascii=False)


def with_image_sizes(spec: Mapping[str, Any], recipe: RecipeFile) -> dict[str, Any]:
    """Return a spec with the size of the training images, if the model takes any size and does not
    resize them."""
    parts = {key: dict(part) for key, part in spec.get("preprocessing", {}).items()}
    for key, part in parts.items():
        if part.get("resize") == "none" and part.get("size") is None:
            training, model = zoo.load_spec(recipe.spec), zoo.compose(recipe.spec)
            part.update(fit_parameters(training, model, training.sections.preprocessing)[key])
    return {**spec, "preprocessing": parts}


def without_folders(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec with the file names of its tokenizers, which are stored in the model."""
    parts = {key: dict(part) for key, part in spec.get("preprocessing", {}).items()}
    for part in parts.values():
        if isinstance(part.get("tokenizer"), str):
            part["tokenizer"] = Path(part["tokenizer"]).name
    return {**spec, "preprocessing": parts}


def render_notice(models: Sequence[CatalogueEntry]) -> str:
    """Return the licences of all shipped models and of their training data."""
    lines = ["# Licences of the shipped models and of their training data", ""]
    lines += ["The text of Apache-2.0 is in `LICENSE`; CC-BY-SA-4.0 is the licence at", CC_URL, ""]
    for model in models:
        for data in model.shipped.data if model.shipped else ():
            lines.append(f"- `{model.name}`: the weights are licensed under {model.licence}.")
            lines.append(f"  Trained on {data.name}. {data.attribution}. {data.url}")
            lines.append(f"  Licence of the data: {data.licence}.")
    return "\n".join(lines) + "\n"


def find_licences(names: Sequence[str], root: Path = ROOT) -> list[dict[str, str]]:
    """Return the licences of data sets; raise ZooError if one is not listed."""
    file = root / "weights" / "data_licences.yaml"
    known = yaml.safe_load(file.read_text(encoding="utf-8"))
    if unknown := [name for name in names if name not in known]:
        raise ZooError(
            f"{file.name} has no licence of {', '.join(unknown)}; weights trained on other data "
            "are not shipped"
        )
    keys = ("licence", "attribution", "url")
    return [{"name": name, **{key: known[name][key] for key in keys}} for name in names]


def required_licence(names: Sequence[str], root: Path = ROOT) -> str | None:
    """Return the licence that a data set requires of weights trained on it, or None."""
    known = yaml.safe_load((root / "weights" / "data_licences.yaml").read_text(encoding="utf-8"))
    required = [known[name]["weights"] for name in names if "weights" in known[name]]
    return required[0] if required else None
