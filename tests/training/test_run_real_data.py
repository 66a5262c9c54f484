"""The paths of the guides on real data: from files to the result of `zoo eval`.

ZOO_DATA is a folder with ``multi30k/``, ``mnist/`` and ``planetoid/``.
"""

import os
from pathlib import Path

import pytest

import zoo

DATA = Path(os.environ.get("ZOO_DATA", "../shared/data")).resolve()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason="set ZOO_DATA to the folder of the data sets"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ZOO_DATA", str(DATA))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _evaluate(spec, **options):
    Path("spec.yaml").write_text(spec)
    zoo.train("spec.yaml", output="run", device="cpu")
    return zoo.evaluate("run", **options)


def test_a_transformer_learns_frequent_words_of_multi30k_in_200_steps():
    spec = """
      extends: transformer-small
      name: multi30k
      model: {source: {vocab: 4000, dim: 128}, encoder: {layers: 2}, decoder: {layers: 2}}
      preprocessing:
        source: {type: text, tokenizer: tokenizer.json}
        target: {type: text, tokenizer: tokenizer.json}
      train:
        data: {type: parallel-text, source: $ZOO_DATA/multi30k/train.en.xz, target: $ZOO_DATA/multi30k/train.de.xz}
        test: {type: parallel-text, source: $ZOO_DATA/multi30k/test_2016_flickr.en.xz, target: $ZOO_DATA/multi30k/test_2016_flickr.de.xz}
        optimiser: {type: adamw, lr: 2e-3}
        schedule: {type: inverse-sqrt, warmup: 100}
        batch: {tokens: 1024}
        steps: 200
    """  # noqa: E501
    texts = [DATA / "multi30k" / f"train.{language}.xz" for language in ("en", "de")]
    zoo.train_tokenizer(texts, "tokenizer.json", vocab=4000, special=("pad", "bos", "eos", "unk"))
    result = _evaluate(spec, max_examples=100, max_length=40)
    assert result.values["bleu"] > 1
    assert result.values["loss"] < 5.5


def test_image_small_reaches_90_percent_on_mnist_in_100_steps():
    result = _evaluate("""
      extends: image-small
      name: mnist
      train:
        data: {type: idx, images: $ZOO_DATA/mnist/train-images-idx3-ubyte.xz, labels: $ZOO_DATA/mnist/train-labels-idx1-ubyte.xz}
        test: {type: idx, images: $ZOO_DATA/mnist/t10k-images-idx3-ubyte.xz, labels: $ZOO_DATA/mnist/t10k-labels-idx1-ubyte.xz}
        optimiser: {type: adamw, lr: 2e-3}
        schedule: {type: cosine, warmup: 10}
        batch: {items: 64}
        steps: 100
    """, max_examples=1000)  # noqa: E501  # fmt: skip
    assert result.values["accuracy"] > 0.9


def test_the_model_of_the_paper_reaches_80_percent_on_cora():
    """Veličković et al. 2018 report 83.0 with a patience of 100 epochs on the validation loss."""
    result = _evaluate("""
      extends: gat-cora
      name: cora
      train:
        data: {type: graph, file: $ZOO_DATA/planetoid/cora.npz.xz, normalise: true}
        validation: {type: graph, file: $ZOO_DATA/planetoid/cora.npz.xz, normalise: true, split: validation}
        test: {type: graph, file: $ZOO_DATA/planetoid/cora.npz.xz, normalise: true, split: test}
        optimiser: {type: adam, lr: 0.005, weight_decay: 5e-4}
        evaluate: {patience: 100}
        epochs: 250
    """)  # noqa: E501
    assert result.values["accuracy"] >= 0.8
