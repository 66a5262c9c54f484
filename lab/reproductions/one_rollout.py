"""Computes the test error of the shipped `ram-mnist` with one rollout, as the paper evaluates it.

ZOO_DATA=data python lab/reproductions/one_rollout.py
"""

import json
import lzma
import os
from pathlib import Path

import numpy as np

import zoo

FILE = Path(__file__).with_name("one_rollout.json")
COMMAND = "python lab/reproductions/one_rollout.py"
BATCH = 1000


def measure() -> dict[str, object]:
    """Return the number of test images, and the percentage that is misclassified."""
    folder = Path(os.environ["ZOO_DATA"]) / "mnist"
    pixels = lzma.decompress((folder / "t10k-images-idx3-ubyte.xz").read_bytes())
    labels = lzma.decompress((folder / "t10k-labels-idx1-ubyte.xz").read_bytes())
    images = np.frombuffer(pixels, np.uint8, offset=16).reshape(-1, 28, 28)
    model = zoo.load("ram-mnist").double()
    model.rollouts = 1
    found = [
        int(prediction.label)
        for start in range(0, len(images), BATCH)
        for prediction in zoo.predict(model, list(images[start : start + BATCH]))
    ]
    wrong = int((np.array(found) != np.frombuffer(labels, np.uint8, offset=8)).sum())
    return {"command": COMMAND, "items": len(found), "error": 100 * wrong / len(found)}


if __name__ == "__main__":
    FILE.write_text(json.dumps({"ram-mnist": measure()}, indent=1) + "\n", encoding="utf-8")
