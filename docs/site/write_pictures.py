"""Make the pictures of the docs: diagrams, and what shipped models attend to.

    python docs/site/write_pictures.py            # the diagrams
    python docs/site/write_pictures.py --attend   # the pictures of models too, with `zoo attend`

The recordings and the graph are examples of the data sets in the folder ZOO_DATA; other inputs are
written or drawn here.
"""

import os
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
from diagrams import floors_svg, kinds_svg
from PIL import Image

from zoo.cli.main import app
from zoo_demo.digits import draw_digit

PICTURES = Path(__file__).parents[1] / "pictures"
DIAGRAMS = {"kinds.svg": kinds_svg, "floors.svg": floors_svg}
SENTENCE = "'A casa branca perto do rio foi vendida na semana passada.'"
RECORDINGS = (
    "{type: delta-audio, file: $ZOO_DATA/fsdd/audio.delta16.xz, index: $ZOO_DATA/fsdd/index.tsv, "
    "rate: 8000, target: digit, group: speaker, where: {index: [0, 1, 2, 3, 4]}}"
)
# What follows `zoo attend MODEL`; DIGIT and SCENE are drawn images.
INPUTS = {
    "captions-digits-soft": "SCENE",
    "ctc-digits": "--data type=joined --data least=4 --data most=4 --data pause=0.2 --data seed=2 "
    f"--data group=group --data 'data={RECORDINGS}'",
    "g2p-bahdanau": "phonetics",
    "gat-cora": "--data type=graph --data file=$ZOO_DATA/planetoid/cora.npz.xz --data split=test "
    "--data normalise=true --layers encoder.layers.1",
    "ram-mnist": "DIGIT",
    "tatoeba-por-eng-bahdanau": SENTENCE,
    "tatoeba-por-eng-transformer": f"{SENTENCE} --layers 'decoder.*.cross' --heads 1,2,3,4",
}


def main() -> None:
    """Write the pictures."""
    os.environ["ZOO_PLUGINS"] = "none"  # other installed plugins have documentation of their own
    PICTURES.mkdir(exist_ok=True)
    for name, draw in DIAGRAMS.items():
        (PICTURES / name).write_text(draw(), encoding="utf-8")
    if "--attend" in sys.argv[1:]:
        for model in INPUTS:
            attend(model)


def attention_picture(model: str) -> Path:
    """Return the file of a model's picture."""
    return PICTURES / f"attention-{model}.png"


def attend(model: str) -> None:
    """Make the picture of a model."""
    with tempfile.TemporaryDirectory() as folder:
        images = {"DIGIT": draw_digit("5"), "SCENE": draw_scene("3071")}
        words = shlex.split(INPUTS[model])
        for word in set(words) & set(images):
            file = Path(folder) / "image.png"
            Image.fromarray(images[word]).save(file)
            words[words.index(word)] = str(file)
        arguments = ["attend", model, *words, "-o", str(attention_picture(model))]
        app(arguments, standalone_mode=False)


def draw_scene(digits: str) -> np.ndarray:
    """Return an image [48, 128] of digits side by side, at different heights."""
    scene = np.zeros((48, 128), dtype=np.uint8)
    for place, digit in enumerate(digits):
        top, left = (4, 14, 8, 18)[place % 4], 4 + 31 * place
        scene[top : top + 28, left : left + 28] |= draw_digit(digit)
    return scene


if __name__ == "__main__":
    main()
