"""Whisper: audio in, first tokens by the generation config."""

import json

import pytest
import torch
from hf_model_kit import MAX_LENGTH, generate_spoken, hf_model, import_and_load, speech
from hf_models import MODELS

import zoo

LANGUAGES = {"<|en|>": 20, "<|de|>": 21, "<|fr|>": 22}
FULL = {
    "lang_to_id": LANGUAGES, "task_to_id": {"transcribe": 23, "translate": 24},
    "no_timestamps_token_id": 25, "is_multilingual": True, "return_timestamps": False,
    "forced_decoder_ids": [[1, None], [2, 23]], "begin_suppress_tokens": [7, 2],
    "suppress_tokens": [9, 11, 23, 24], "max_initial_timestamp_index": 50,
    "alignment_heads": [[0, 0]], "prev_sot_token_id": 5,
}  # fmt: skip


@pytest.fixture(scope="module")
def theirs():
    """Return a model whose outputs vary."""
    model = hf_model("whisper")
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
    return model


@pytest.fixture
def load(theirs, tmp_path):
    """Return both models with changes of the generation config."""

    def load(changes, file="generation_config.json"):
        folder = tmp_path / "theirs"
        theirs.save_pretrained(folder)
        path = folder / file
        if file == "config.json":
            (folder / "generation_config.json").unlink()
        path.write_text(
            json.dumps(json.loads(path.read_text()) | {"_from_model_config": False} | changes)
        )
        again = MODELS["whisper"][0].from_pretrained(folder).eval()
        return import_and_load(folder, tmp_path), again

    return load


FIRST = {
    "the language is detected": (FULL, 3),
    "a language": (FULL | {"language": "de"}, 3),
    "a task": (FULL | {"task": "translate"}, 3),
    "a language and a task": (FULL | {"language": "<|fr|>", "task": "translate"}, 3),
    "forced": (FULL | {"forced_decoder_ids": [[1, 21], [2, 23], [3, 25]]}, 3),
    "english only": ({"forced_decoder_ids": [[1, 25]], "no_timestamps_token_id": 25}, 1),
    "none": ({}, 0),
}


@pytest.mark.parametrize(("changes", "count"), FIRST.values(), ids=FIRST)
def test_the_first_tokens_are_those_of_transformers(load, changes, count):
    ours, theirs = load(changes)
    audio, features = speech(theirs, 8)
    inputs = [(samples.numpy(), 16000) for samples in audio]
    answers = zoo.generate(ours, inputs, max_length=MAX_LENGTH)
    with torch.no_grad():
        rows = theirs.generate(features, max_new_tokens=MAX_LENGTH - count).tolist()
    expected = [row[: row.index(2)] if 2 in row else row for row in rows]
    assert [ranked[0].tokens[count:] for ranked in answers] == expected
    assert len({tuple(row) for row in expected}) > 2 or not changes
    first = [ranked[0].tokens[:count] for ranked in answers]
    assert all(row[1:] in ([23, 25], [24, 25], []) for row in first)
    if "lang_to_id" in changes:
        assert {row[0] for row in first} <= set(LANGUAGES.values())


def test_a_prompt_selects_the_language(load):
    ours, theirs = load(FULL)
    theirs.generation_config.language = "fr"
    actual, expected = generate_spoken(ours, theirs, 8, prompt=[22])
    assert [row[2:] for row in actual] == [
        row[: len(a) - 2] for row, a in zip(expected, actual, strict=True)
    ]


def test_older_folders_have_the_tokens_in_the_config(load):
    ours, _ = load({"forced_decoder_ids": [[1, 25]], "suppress_tokens": [9]}, "config.json")
    assert [part["tokens"] for part in ours.spec["filters"]] == [[25], [9]]


REJECTED = [
    {"return_timestamps": True},
    {"language": "german", "lang_to_id": LANGUAGES},
    {"task": "sing", "task_to_id": {"transcribe": 23}},
    {"forced_decoder_ids": [[2, 25]]},
    {"forced_decoder_ids": [[1, 25], [2, None]]},
    {"lang_to_id": ["en"]},
    {"no_timestamps_token_id": "25"},
    {"no_such_key": 3},
]


@pytest.mark.parametrize("changes", REJECTED, ids=str)
def test_other_values_are_rejected_by_name(load, changes):
    with pytest.raises(
        zoo.ZooError, match=rf"generation_config\.json: '{next(iter(changes))}' is "
    ):
        load(changes)


def test_the_feature_extractor_is_imported(theirs, tmp_path):
    folder = tmp_path / "theirs"
    theirs.save_pretrained(folder)
    extractor = {
        "chunk_length": 30, "feature_extractor_type": "WhisperFeatureExtractor", "hop_length": 80,
        "feature_size": 5, "n_fft": 200, "n_samples": 480000, "nb_max_frames": 3000,
        "padding_side": "right", "padding_value": 0.0, "return_attention_mask": False,
        "processor_class": "WhisperProcessor", "sampling_rate": 8000,
    }  # fmt: skip
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(extractor))
    ours = import_and_load(folder, tmp_path)
    inner = ours.spec["model"]["source"]["inner"]
    assert [inner[key] for key in ("rate", "window", "hop", "frames")] == [8000, 200, 80, 8]
    assert ours.spec["preprocessing"]["source"]["rate"] == 8000
    zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    path.write_text(json.dumps(extractor | {"padding_side": "left"}))
    with pytest.raises(zoo.ZooError, match=r"preprocessor_config\.json: 'padding_side' is"):
        import_and_load(folder, tmp_path)
    path.write_text(json.dumps(extractor | {"pre_emphasis": 0.97}))
    with pytest.raises(zoo.ZooError, match=r"preprocessor_config\.json: 'pre_emphasis' is"):
        import_and_load(folder, tmp_path)
