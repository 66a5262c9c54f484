"""Small untrained models with the names of the demo's models."""

from pathlib import Path

import zoo
from zoo.data.tokenizer import attach_tokenizers
from zoo.data.tokenizer_training import train_on_texts

TEXTS = ["Onde fica a estação?", "Where is the station?", "A casa branca foi vendida."] * 3
SMALL = {
    "bahdanau-small": [
        "model.source.dim=8",
        "model.encoder.hidden=6",
        "model.decoder.hidden=7",
        "model.decoder.readout=8",
        "model.decoder.attention.scorer.hidden=5",
    ],
    "transformer-small": [
        "model.source.dim=8",
        "model.encoder.layers=1",
        "model.decoder.layers=2",
        "model.encoder.feed_forward.hidden=8",
        "model.decoder.feed_forward.hidden=8",
    ],
}


def compose_translator(spec: str) -> zoo.Model:
    """Return an untrained translator with a tokenizer of bytes and a few pairs of them."""
    overrides = ["model.source.vocab=300", *SMALL[spec]]
    model = zoo.compose(spec, overrides=overrides, seed=0).eval()
    tokenizer = train_on_texts(lambda: iter(TEXTS), model=model).json
    attach_tokenizers(model, {"source": tokenizer, "target": tokenizer})
    return model


def compose_reader() -> zoo.Model:
    """Return an untrained RAM that takes images."""
    sections = ["preprocessing.source.type=image", "preprocessing.source.resize=none"]
    return zoo.compose("ram-mnist", overrides=["model.hidden=16", *sections], seed=0).eval()


def save_models(folder: Path) -> None:
    """Save models that ``zoo demo`` in this folder loads, instead of the shipped ones."""
    zoo.save(compose_translator("bahdanau-small"), folder / "tatoeba-por-eng-bahdanau")
    zoo.save(compose_translator("transformer-small"), folder / "tatoeba-por-eng-transformer")
    zoo.save(compose_reader(), folder / "ram-mnist")
