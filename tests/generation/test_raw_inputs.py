"""Generation and prediction from files, arrays and texts, with the preprocessors of the spec."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image
from typer.testing import CliRunner

import zoo
from zoo import DataError, ZooError
from zoo.cli.main import app
from zoo.plugin import Audio
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 12, 3), dtype=np.uint8)
SAMPLES = np.random.default_rng(1).uniform(-0.9, 0.9, 1600).astype(np.float32)
DECODER = {"type": "plain-rnn", "hidden": 5}
BACKBONE = {"type": "convolution", "layers": [{"channels": 4, "kernel": 3, "pool": {}}]}
GRU = {"type": "gru", "hidden": 6}


def captioner(**preprocessing):
    return {
        "zoo": 1,
        "name": "captions",
        "model": {
            "type": "seq2seq",
            "source": {"type": "regions", "backbone": BACKBONE},
            "target": {"type": "token", "vocab": 9, "dim": 4},
            "encoder": {"type": "identity"},
            "decoder": DECODER,
        },
        "sampler": "greedy",
        "preprocessing": {"source": {"type": "image", "size": 16}, **preprocessing},
    }


def recogniser():
    return {
        "zoo": 1,
        "name": "speech",
        "model": {
            "type": "seq2seq",
            "source": {"type": "log-mel", "rate": 8000, "window": 64, "hop": 32, "mels": 8},
            "target": {"type": "token", "vocab": 9, "dim": 4},
            "encoder": GRU,
            "decoder": DECODER,
        },
        "sampler": "greedy",
        "preprocessing": {"source": {"type": "audio", "rate": 8000}},
    }


def classifier(**preprocessing):
    return {
        "zoo": 1,
        "name": "digits",
        "model": {
            "type": "classifier",
            "source": {"type": "patches", "size": 4, "channels": 1, "dim": 8},
            "encoder": GRU,
            "classes": 3,
            "pooling": "summary",
        },
        "preprocessing": {
            "source": {"type": "image", "size": 8},
            "target": {"type": "label", "classes": ["cat", "dog", "owl"]},
            **preprocessing,
        },
    }


def loaded(spec, tmp_path):
    path = zoo.save(zoo.compose(spec, seed=1), tmp_path / "model.safetensors")
    return path, zoo.load(path)


def by_hand(model, source):
    """The tokens of a batch of tensors."""
    from zoo_sampling.greedy import Greedy

    output = model.generate({"source": source}, Greedy(), max_length=6)
    rows = [row[0].tolist() for row in output.tokens]
    return [row[: row.index(model.eos)] if model.eos in row else row for row in rows]


def generated(model, inputs):
    return [each[0].tokens for each in zoo.generate(model, inputs, max_length=6)]


def test_a_png_gives_the_tokens_of_its_tensor(tmp_path):
    path, model = loaded(captioner(), tmp_path)
    Image.fromarray(PIXELS).save(tmp_path / "a.png")
    resized = Image.fromarray(PIXELS).resize((16, 16), Image.Resampling.BILINEAR)
    source = torch.tensor(np.asarray(resized)).permute(2, 0, 1)[None] / 255
    expected = by_hand(model, source)
    assert generated(model, [tmp_path / "a.png"]) == expected
    assert generated(model, [str(tmp_path / "a.png"), PIXELS]) == expected * 2
    result = CliRunner().invoke(
        app, ["generate", str(path), str(tmp_path / "a.png"), "--max-length", "6"]
    )
    assert result.output.strip() == " ".join(map(str, expected[0]))


def test_a_wav_gives_the_tokens_of_its_tensor(tmp_path):
    _, model = loaded(recogniser(), tmp_path)
    soundfile.write(tmp_path / "a.wav", SAMPLES, 8000, subtype="FLOAT")
    shorter = Audio(SAMPLES[:900], 8000)
    source = torch.zeros(2, 1600)
    source[0] = torch.tensor(SAMPLES)
    source[1, :900] = torch.tensor(SAMPLES[:900])
    assert generated(model, [Path(tmp_path / "a.wav"), shorter]) == by_hand(model, source)


def test_the_target_is_decoded(tmp_path):
    model = zoo.compose(captioner(target={"type": "text"}), seed=1)
    model.tokenizer = {"target": EXAMPLE_TOKENIZER}
    with torch.no_grad():
        model.decoder.out.bias[3] += 100
    zoo.save(model, tmp_path / "model.safetensors")
    (found,) = zoo.generate(zoo.load(tmp_path / "model.safetensors"), [PIXELS], max_length=3)
    assert found[0].text == "cat cat cat"


def test_texts_use_the_preprocessor_of_the_source():
    token = {"type": "token", "vocab": 9, "dim": 4}
    model = zoo.compose(
        {
            "zoo": 1,
            "name": "words",
            "model": {"type": "seq2seq", "source": token, "encoder": GRU, "decoder": DECODER},
            "sampler": "greedy",
            "preprocessing": {"source": {"type": "text", "lowercase": True}},
        }
    )
    model.tokenizer = {"source": EXAMPLE_TOKENIZER}
    assert generated(model, ["The CAT"]) == generated(model, [[2, 3]])
    with pytest.raises(ZooError, match="input 2: it is empty"):
        zoo.generate(model, ["a", ""])


def test_wrong_inputs_raise(tmp_path):
    model = zoo.compose(captioner())
    with pytest.raises(DataError, match=r"none\.png: there is no such file"):
        zoo.generate(model, ["none.png"])
    with pytest.raises(DataError, match="it is a folder; name the files in it"):
        zoo.generate(model, [tmp_path])
    (tmp_path / "a.png").write_text("text")
    with pytest.raises(DataError, match=r"a\.png: it is not a valid PNG"):
        zoo.generate(model, [tmp_path / "a.png"])
    with pytest.raises(DataError, match="input 2: expected an image"):
        zoo.generate(model, [PIXELS, 3])
    with pytest.raises(ZooError, match="expected a list of inputs"):
        zoo.generate(model, 7)
    with pytest.raises(DataError, match=r"a\.png: it is not a valid PNG"):
        zoo.generate(model, str(tmp_path / "a.png"))
    assert zoo.generate(model, PIXELS) == zoo.generate(model, [PIXELS])[0]
    with pytest.raises(ZooError, match="inputs is empty"):
        zoo.generate(model, [])
    plain = zoo.compose({k: v for k, v in captioner().items() if k != "preprocessing"})
    with pytest.raises(ZooError, match=r"does not take tokens.*has no preprocessor for 'source'"):
        zoo.generate(plain, ["a.png"])


def test_the_class_of_an_image_is_predicted(tmp_path):
    path, model = loaded(classifier(), tmp_path)
    Image.fromarray(PIXELS).save(tmp_path / "a.png")
    grey = Image.fromarray(PIXELS).convert("L").resize((8, 8), Image.Resampling.BILINEAR)
    source = torch.tensor(np.asarray(grey))[None, None] / 255
    batch = {"source": source, "target": torch.tensor([0])}
    expected = model(batch).logits[0, 0].detach().softmax(dim=-1)
    found, same = zoo.predict(model, [tmp_path / "a.png", PIXELS])
    assert found == same
    assert found.label == ["cat", "dog", "owl"][int(expected.argmax())]
    assert found.probability == pytest.approx(float(expected.max()), abs=1e-6)
    assert [p for _, p in found.top] == pytest.approx(sorted(expected.tolist(), reverse=True))
    result = CliRunner().invoke(app, ["generate", str(path), str(tmp_path / "a.png")])
    assert result.output.strip() == f"{found.label} {found.probability:.4f}"


def test_answers_to_stories_are_predicted():
    spec = {
        "zoo": 1,
        "name": "stories",
        "extends": "memory-network-tiny",
        "preprocessing": {
            "story": {"type": "text-list"},
            "question": {"type": "text"},
            "target": {"type": "text"},
        },
    }
    model = zoo.compose(spec)
    model.tokenizer = dict.fromkeys(("story", "question", "target"), EXAMPLE_TOKENIZER)
    story = {"story": ["the cat sat", "on a mat"], "question": "the cat"}
    (found,) = zoo.predict(model, [story], top_k=2)
    assert len(found.top) == 2
    with pytest.raises(ZooError, match="input 1 has 'story', but the model takes 'story', 'quest"):
        zoo.predict(model, [{"story": ["a"]}])


def test_prediction_needs_a_preprocessor_and_a_model_with_one_class_for_each_item():
    plain = {k: v for k, v in classifier().items() if k != "preprocessing"}
    with pytest.raises(ZooError, match="'classifier' has no preprocessor for 'source'"):
        zoo.predict(zoo.compose(plain), [PIXELS])
    with pytest.raises(ZooError, match="one class for each item; generate with it: zoo generate"):
        zoo.predict(zoo.compose("transformer-tiny"), ["a"])
