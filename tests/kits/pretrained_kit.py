"""Where trained models of other people lie, if they are here."""

import json
import os
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).parents[2]
WEIGHTS = Path(os.environ.get("ZOO_WEIGHTS", ROOT.parent / "shared" / "weights"))
ATOL = 1e-4


def load_reference(name):
    """The folder of one, its reference answers and arrays; skips where it is absent."""
    folder = WEIGHTS / name
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"the trained model {name} is not in {WEIGHTS}; set ZOO_WEIGHTS to its folder")
    reference = json.loads((folder / "reference.json").read_text(encoding="utf-8"))
    return folder, reference, numpy.load(folder / "reference.npz")
