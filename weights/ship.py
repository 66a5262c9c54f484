"""Adds trained models to the weights that ship, and computes their results.

    python weights/ship.py runs/reproductions/gat-cora/seed-0 --data data
    python weights/ship.py --measure gat-cora --data data
    python weights/ship.py --describe gat-cora --data data

A run is a folder that `zoo reproduce` wrote. Nothing is changed unless all steps succeed.
"""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from shipped_metadata import (
    ROOT,
    find_licences,
    fold_case,
    render_notice,
    required_licence,
    with_image_sizes,
    without_folders,
)

import zoo
from zoo.cli.progress import task_progress
from zoo.errors import ZooError
from zoo.hub.catalogue import CatalogueEntry, read_catalogue
from zoo.hub.lock_file import hash_file
from zoo.hub.models import read_header
from zoo.registry.component_registry import default_registry
from zoo_lab.environment import find_commit
from zoo_lab.reproduce.data_check import DEFAULT, VARIABLE, set_data_folder
from zoo_lab.reproduce.recipe_file import RecipeFile, read_recipe
from zoo_lab.reproduce.result import SeedResult
from zoo_lab.reproduce.shipped_result import ShippedResult, measure_shipped

FILES = Path("weights", "zoo_weights")
RESULTS = Path("lab", "reproductions", "shipped")
REGISTRY = "registry.yaml"
NOTICE = FILES / "NOTICE.md"
MAX_BYTES = 24_000_000
"""Largest size of all files together."""


def ship(
    run: Path, *, root: Path = ROOT, device: str = "cpu", recipe_source: str | None = None
) -> ShippedResult:
    """Add the model of a run, or replace it."""
    source = run if run.suffix == ".safetensors" else run / "model.safetensors"
    header = read_header(source)
    recipe = read_recipe(recipe_source or header.spec["name"], check=False)
    training = _read_training(source.parent / "result.json", recipe)
    find_licences(recipe.recipe.data, root)
    with TemporaryDirectory() as folder:
        staged = Path(folder)
        file = staged / FILES / f"{recipe.name}.safetensors"
        file.parent.mkdir(parents=True)
        model = zoo.load(source, dtype="bfloat16")
        model.spec = without_folders(header.spec)
        shipped = save_shipped(model, file, recipe, header.provenance, root)
        text = (root / REGISTRY).read_text(encoding="utf-8")
        (staged / REGISTRY).write_text(edit_registry(text, recipe, shipped, []), encoding="utf-8")
        check_total(read_catalogue(staged / REGISTRY))
        with task_progress() as progress:
            entry = find_entry(staged / REGISTRY, recipe.name)
            result = measure_shipped(entry, training, device=device, progress=progress)
        (root / FILES).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, root / FILES / file.name)
    write(root, recipe, shipped, result)
    return result


def describe(name: str, *, root: Path = ROOT) -> ShippedResult:
    """Write the metadata of a shipped model again: licences, tokenizers and the size of its images.

    The weights are bitwise equal, and so are its results.
    """
    entry = find_entry(root / REGISTRY, name)
    assert entry.shipped is not None
    recipe = read_recipe(entry.shipped.recipe, check=False)
    target = root / entry.shipped.file
    header = read_header(target)
    with TemporaryDirectory() as folder:
        file = Path(folder) / target.name
        model = zoo.load(target)
        model.spec = with_image_sizes(header.spec, recipe)
        shipped = save_shipped(model, file, recipe, header.provenance, root)
        if read_header(file).hashes != header.hashes:
            raise ZooError(f"the weights of {target} would change")
        shutil.copyfile(file, target)
    sizes = {key: shipped[key] for key in ("sha256", "bytes")}
    result = read_result(name, root).model_copy(update=sizes)
    write(root, recipe, shipped, result)
    return result


def save_shipped(
    model: zoo.Model, file: Path, recipe: RecipeFile, provenance: Mapping[str, Any], root: Path
) -> dict[str, Any]:
    """Save a model with the licences of its data, and return its row in the catalogue."""
    names = recipe.recipe.data
    licences = find_licences(names, root)
    model.tokenizer = {
        key: fold_case(text) if key == "source" else text
        for key, text in (model.tokenizer or {}).items()
    } or None
    described: dict[str, Any] = {"data_licences": licences}
    if licence := required_licence(names, root):
        described["licence"] = licence
    zoo.save(model, file, provenance={**provenance, **described})
    return {
        "file": (FILES / file.name).as_posix(),
        "sha256": hash_file(file),
        "bytes": file.stat().st_size,
        "dtype": "bfloat16",
        "recipe": recipe.source,
        "data": licences,
    }


def measure(name: str, *, root: Path = ROOT, device: str = "cpu") -> ShippedResult:
    """Compute the results of a shipped model again."""
    entry = find_entry(root / REGISTRY, name)
    assert entry.shipped is not None
    recipe = read_recipe(entry.shipped.recipe, check=False)
    with task_progress() as progress:
        training = read_result(name, root).training
        result = measure_shipped(entry, training, device=device, progress=progress)
    write(root, recipe, entry.shipped.as_json(), result)
    return result


def write(
    root: Path, recipe: RecipeFile, shipped: Mapping[str, Any], result: ShippedResult
) -> None:
    """Write the results, the entry in the catalogue and the notice."""
    file = root / RESULTS / f"{result.name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{result.model_dump_json(indent=1)}\n", encoding="utf-8")
    registry = root / REGISTRY
    text = registry.read_text(encoding="utf-8")
    licence = required_licence(recipe.recipe.data, root)
    text = edit_registry(text, recipe, shipped, result_rows(recipe, result), licence)
    registry.write_text(text, encoding="utf-8")
    (root / NOTICE).write_text(render_notice(read_catalogue(registry)), encoding="utf-8")


def read_result(name: str, root: Path = ROOT) -> ShippedResult:
    """Return the committed results of a shipped model."""
    text = (root / RESULTS / f"{name}.json").read_text(encoding="utf-8")
    return ShippedResult.model_validate_json(text)


def result_rows(recipe: RecipeFile, result: ShippedResult) -> list[dict[str, Any]]:
    """Return the figures of a recipe that are computed from its model, as in the catalogue."""
    rows = []
    for figure in recipe.recipe.figures:
        evaluation, metric = figure.value.split("/", 1)
        if figure.value in result.values:
            value = round(result.values[figure.value], 4)
            dataset = ", ".join(recipe.recipe.data) or recipe.name
            label = {"label": figure.metric_label} if figure.metric_label else {}
            rows.append(
                {"metric": metric, **label, "value": value, "dataset": dataset, "split": evaluation}
            )
    return rows


def edit_registry(
    text: str,
    recipe: RecipeFile,
    shipped: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    licence: str | None = None,
) -> str:
    """Return the text of a catalogue with the weights and results of a model.

    Lines of other models are not changed. A model that is not listed is added at the end.
    """
    head, *blocks = re.split(r"^(?=  - name: )", text, flags=re.MULTILINE)
    listed = {yaml.safe_load(block)[0]["name"]: block for block in blocks}
    if recipe.name in listed:
        known = yaml.safe_load(listed[recipe.name])[0]
    else:
        known = {"spec": _base_spec(recipe), "paper": recipe.recipe.paper, "licence": "Apache-2.0"}
    known["licence"] = licence or known["licence"]
    row = {"name": recipe.name, **known, "shipped": dict(shipped), "results": list(results)}
    dumped = yaml.safe_dump([row], sort_keys=False, allow_unicode=True, width=1_000)
    listed[recipe.name] = "".join(f"  {line}\n" for line in dumped.splitlines())
    return "".join([head, *listed.values()])


def find_entry(registry: Path, name: str) -> CatalogueEntry:
    """Return the entry of a shipped model."""
    models = {model.name: model for model in read_catalogue(registry) if model.shipped}
    if name not in models:
        raise ZooError(f"'{name}' has no shipped weights; those have: {', '.join(models)}")
    return models[name]


def check_total(models: Sequence[CatalogueEntry]) -> None:
    """Raise ZooError if the files are larger than `MAX_BYTES` together."""
    total = sum(model.shipped.bytes for model in models if model.shipped)
    if total > MAX_BYTES:
        raise ZooError(f"the files have {total:,} bytes; at most {MAX_BYTES:,} are allowed")


def _read_training(file: Path, recipe: RecipeFile) -> SeedResult:
    """Return how the model was trained; raise ZooError if it is not the model of the recipe."""
    if not file.is_file():
        raise ZooError(f"{file} is missing; pass a folder that 'zoo reproduce' wrote")
    training = SeedResult.model_validate_json(file.read_text(encoding="utf-8"))
    if training.overrides or training.fingerprint != recipe.fingerprint:
        raise ZooError(f"{file.parent} was run with other settings than the recipe {recipe.name}")
    return training.model_copy(update={"curve": []})  # it is in lab/reproductions/results


def _base_spec(recipe: RecipeFile) -> str:
    assert recipe.spec is not None
    return default_registry().spec(recipe.spec.data["extends"]).relative_to(ROOT).as_posix()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folder of one seed")
    parser.add_argument("--measure", action="append", default=[], metavar="NAME")
    parser.add_argument("--describe", action="append", default=[], metavar="NAME")
    parser.add_argument(
        "--data", help=f"folder of the data sets; default: {VARIABLE}, or {DEFAULT}"
    )
    parser.add_argument("--device", default="cpu", help="device of the evaluation; default: cpu")
    arguments = parser.parse_args()
    set_data_folder(arguments.data)
    if commit := find_commit():
        os.environ["ZOO_COMMIT"] = commit  # the catalogue is changed by the first model
    try:
        results = [ship(run, device=arguments.device) for run in arguments.runs]
        results += [measure(name, device=arguments.device) for name in arguments.measure]
        results += [describe(name) for name in arguments.describe]
    except ZooError as error:
        sys.exit(f"error: {error}")
    for result in results:
        print(f"{result.name}: {result.bytes:,} bytes, {result.values}")


if __name__ == "__main__":
    main()
