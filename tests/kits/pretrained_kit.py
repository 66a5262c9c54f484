"""Published models with reference outputs, if they are available."""

import json
import os
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).parents[2]
WEIGHTS = Path(os.environ.get("ZOO_WEIGHTS", ROOT.parent / "shared" / "weights"))
ATOL = 1e-4


def load_reference(name):
    """Return the folder of a model, its reference outputs and arrays; skip if it is missing."""
    folder = WEIGHTS / name
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"the trained model {name} is not in {WEIGHTS}; set ZOO_WEIGHTS to its folder")
    reference = json.loads((folder / "reference.json").read_text(encoding="utf-8"))
    return folder, reference, numpy.load(folder / "reference.npz")
