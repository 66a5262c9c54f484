"""A small recipe with its data and its results: the training set is that of `training_kit`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from training_kit import make_spec, write_files

from zoo_lab.reproduce.recipe_schema import Figure
from zoo_lab.reproduce.result import Reproduction, SeedResult, collect_figures


def write_recipe(folder: Path, **changes: Any) -> Path:
    """Write the data set ``letters`` with checksums, and a recipe that uses it."""
    data = folder / "data" / "letters"
    data.mkdir(parents=True)
    write_files(data)
    (data / "words.json").unlink()  # the recipe trains its own
    sums = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  ./letters/{file.name}"
        for file in sorted(data.iterdir())
    ]
    (folder / "data" / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    spec = make_spec(Path("$ZOO_DATA/letters"))
    spec["preprocessing"] = {key: {"type": "text"} for key in ("source", "target")}
    spec["train"] |= {"test": spec["train"]["validation"], "steps": 4, "evaluate": {"every": 2}}
    del spec["name"]
    recipe = {
        "zoo": 1,
        "name": "letters",
        "description": "reversal of letters",
        "paper": "none",
        "data": ["letters"],
        "tokenizers": {"words": {"keys": ["source", "target"], "method": "words"}},
        "spec": spec,
        "evaluate": {"test": {"metrics": ["exact-match"], "sampler": "greedy", "max_length": 8}},
        "figures": [
            {"value": "test/exact-match", "label": "errors", "unit": "% error", "at_most": 100},
            {"value": "validation/loss", "at_least": 50},
        ],
        "seeds": [3, 4],
        "differences": ["a small task"],
        **changes,
    }
    path = folder / "letters.yaml"
    path.write_text(yaml.safe_dump(recipe, sort_keys=False))
    return path


def make_reproduction(
    figures: Sequence[Figure], values: Sequence[dict[str, float]], **changes: Any
) -> Reproduction:
    """Return the results of the recipe ``letters`` with these values of seeds 1, 2, ...

    Args:
        changes: of the results of each seed.
    """
    seeds = [
        SeedResult(
            seed=seed,
            values=found,
            **{
                "fingerprint": "",
                "command": "zoo reproduce letters",
                "commit": "0123456789abcdef",
                "date": "2026-01-02T03:04:05+00:00",
                "hardware": {"device": "GPU"},
                "versions": {"torch": "2.11"},
                "seconds": 90.0,
                **changes,
            },
        )
        for seed, found in enumerate(values, 1)
    ]
    return Reproduction(
        name="letters",
        plugin="",
        description="",
        paper="",
        data={},
        differences=["a small task"],
        planned_seeds=[seed.seed for seed in seeds],
        figures=collect_figures(figures, seeds),
        seeds=seeds,
    )
