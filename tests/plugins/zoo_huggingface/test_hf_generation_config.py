"""``generation_config.json`` gives sampler and filters, or is rejected by the key's name."""

import copy
import json

import pytest
import torch
from hf_model_kit import hf_model, import_and_load, prompts
from hf_models import EOS, MODELS, PAD

import zoo

MAX_LENGTH = 10


@pytest.fixture
def folder(tmp_path):
    """Saves a model with keys of the generation config, or of the config."""

    def save(name, file="generation_config.json", **changes):
        folder = tmp_path / "theirs"
        hf_model(name).save_pretrained(folder)
        if file == "config.json":
            (folder / "generation_config.json").unlink()
        path = folder / file
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))
        return folder

    return save


def generated(folder, name, rows):
    """Return the tokens that transformers generates by the generation config of the folder."""
    theirs = MODELS[name][0].from_pretrained(folder).eval()
    seq2seq = theirs.config.is_encoder_decoder
    options = {} if seq2seq else {"pad_token_id": EOS}
    start = 1 if seq2seq else rows.shape[1]
    with torch.no_grad():
        output = theirs.generate(
            rows, attention_mask=torch.ones_like(rows), max_new_tokens=MAX_LENGTH, **options
        )[:, start:].tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in output]


SUPPORTED = [
    {"repetition_penalty": 5.0},
    {"no_repeat_ngram_size": 2},
    {"repetition_penalty": 1.3, "no_repeat_ngram_size": 1, "top_k": 3, "temperature": 0.1},
    {"min_length": 8, "bad_words_ids": [[PAD], [26], [9]]},
    {"num_beams": 3, "early_stopping": True},
    {"num_beams": 4, "length_penalty": -2.0, "no_repeat_ngram_size": 2, "use_cache": False},
]


@pytest.mark.parametrize("name", ["llama", "marian"])
@pytest.mark.parametrize("changes", SUPPORTED, ids=lambda changes: "-".join(changes))
def test_the_spec_generates_as_transformers_by_its_generation_config(
    folder, tmp_path, name, changes
):
    source = folder(name, **changes)
    ours = import_and_load(source, tmp_path)
    rows = prompts(20)
    if name == "llama":
        rows[:, 0] = ours.bos
    expected = generated(source, name, rows)
    greedy = zoo.generate(ours, rows.tolist(), max_length=MAX_LENGTH, sampler="greedy", filters=[])
    assert [ranked[0].tokens for ranked in greedy] != expected
    actual = zoo.generate(ours, rows.tolist(), max_length=MAX_LENGTH)
    assert [ranked[0].tokens for ranked in actual] == expected


FORCED = [
    {"forced_bos_token_id": 7},
    {"min_new_tokens": 6, "begin_suppress_tokens": [0, *range(3, 25)]},
    {"forced_bos_token_id": 7, "begin_suppress_tokens": list(range(3, 25)), "num_beams": 3},
    {"forced_bos_token_id": 7, "min_length": 9, "num_beams": 4, "length_penalty": 2.0},
]


@pytest.mark.parametrize("changes", FORCED, ids=lambda changes: "-".join(changes))
def test_the_first_tokens_of_a_target_are_forced_or_suppressed(folder, tmp_path, changes):
    source = folder("marian", **changes)
    ours = import_and_load(source, tmp_path)
    expected = generated(source, "marian", prompts(20))
    plain = zoo.generate(ours, prompts(20).tolist(), max_length=MAX_LENGTH, filters=[])
    assert [ranked[0].tokens for ranked in plain] != expected
    actual = zoo.generate(ours, prompts(20).tolist(), max_length=MAX_LENGTH)
    assert [ranked[0].tokens for ranked in actual] == expected


def test_older_folders_have_generation_keys_in_the_config(folder, tmp_path):
    source = folder("marian", "config.json", num_beams=6, bad_words_ids=[[PAD]])
    sampler = import_and_load(source, tmp_path).spec["sampler"]
    assert sampler["type"].endswith("beam")
    assert sampler["width"] == 6


def test_the_start_token_of_the_generation_config_is_used(folder, tmp_path):
    assert import_and_load(folder("marian", decoder_start_token_id=7), tmp_path).bos == 7


REJECTED = {
    "min_length": "5", "min_new_tokens": 3, "forced_bos_token_id": "4", "forced_eos_token_id": 9,
    "suppress_tokens": [-5], "begin_suppress_tokens": [5], "bad_words_ids": [[5, 6]],
    "sequence_bias": [[[4], 2.0]], "exponential_decay_length_penalty": [3, 1.1],
    "guidance_scale": 1.5, "num_beam_groups": 2, "penalty_alpha": 0.6, "stop_strings": ["."],
    "encoder_no_repeat_ngram_size": 2, "encoder_repetition_penalty": 1.2, "repetition_penalty": 0.5,
    "repetition_penalty ": "1.5", "no_such_key": 3, "num_beams": "4",
}  # fmt: skip


@pytest.mark.parametrize("key", REJECTED)
def test_unsupported_keys_are_rejected_by_name(folder, tmp_path, key):
    source = folder("llama", **{key.strip(): REJECTED[key]})
    with pytest.raises(zoo.ZooError, match=rf"generation_config\.json: '{key.strip()}' is "):
        import_and_load(source, tmp_path)


SAMPLING = [
    ({"temperature": 0.5, "top_k": 7}, {"type": "top-k", "k": 7, "temperature": 0.5}),
    ({"top_k": 0, "top_p": 0.8}, {"type": "top-p", "p": 0.8, "temperature": 1.0}),
    ({"top_k": 0, "min_p": 0.2}, {"type": "min-p", "p": 0.2, "temperature": 1.0}),
    ({"top_k": 0, "typical_p": 0.9}, {"type": "typical", "mass": 0.9, "temperature": 1.0}),
    ({"top_k": 0, "temperature": 0.7}, {"type": "temperature", "temperature": 0.7}),
]


@pytest.mark.parametrize(("changes", "sampler"), SAMPLING)
def test_sampling(folder, tmp_path, changes, sampler):
    model = import_and_load(folder("llama", do_sample=True, **changes), tmp_path)
    expected = sampler | {"type": f"sampling:{sampler['type']}"}
    assert dict(model.spec["sampler"]) == expected


COMBINED = [
    {"temperature": 0.6, "top_k": 5, "top_p": 0.8},
    {"top_p": 0.9},
    {"temperature": 1.7, "top_k": 9, "top_p": 0.95, "min_p": 0.05, "typical_p": 0.7},
    {"top_k": 0, "min_p": 0.2, "typical_p": 0.5},
]


@pytest.mark.parametrize("changes", COMBINED)
def test_conditions_are_combined_as_in_transformers(folder, tmp_path, changes):
    source = folder("llama", do_sample=True, **changes)
    built = zoo.load_spec(import_and_load(source, tmp_path).spec).sections.sampler.build()
    theirs = hf_model("llama")
    config = copy.deepcopy(theirs.generation_config)
    config.update(**{"do_sample": True, "top_k": 50, **changes})
    processors = theirs._get_logits_processor(config, input_ids_seq_length=1)
    logits = 3 * torch.randn(200, 31, generator=torch.Generator().manual_seed(0))
    expected = processors(torch.zeros(200, 1, dtype=torch.long), logits.clone()).softmax(dim=-1)
    actual = built.distribution(logits.log_softmax(dim=-1))
    assert torch.equal(actual > 0, expected > 0)
    torch.testing.assert_close(actual, expected, atol=1e-6, rtol=1e-5)


NOTES = [
    ({"do_sample": True, "epsilon_cutoff": 0.1}, "'epsilon_cutoff' is 0.1.*do not apply"),
    ({"do_sample": True, "num_return_sequences": 3}, "'num_return_sequences' is 3"),
    ({"remove_invalid_values": True}, "'remove_invalid_values' is true"),
    ({"max_length": 200}, "'max_length' is 200.*max_length=200"),
    ({"num_beams": 2, "do_sample": True}, "'do_sample' is true.*does not sample"),
    ({"num_beams": 2, "renormalize_logits": True}, "'renormalize_logits' is true"),
]


@pytest.mark.parametrize(("changes", "note"), NOTES, ids=str)
def test_what_a_spec_cannot_contain_is_reported(folder, tmp_path, changes, note):
    with pytest.warns(zoo.ZooWarning, match=rf"generation_config\.json: .*{note}"):
        import_and_load(folder("llama", **changes), tmp_path)


EXPORTED = [
    {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.1},
    {"do_sample": False, "temperature": 0.7, "max_length": 77, "min_length": 3},
    {"num_beams": 4, "length_penalty": 0.8, "early_stopping": True, "no_repeat_ngram_size": 3,
     "forced_eos_token_id": EOS, "suppress_tokens": [7, 9], "bad_words_ids": [[5]]},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*max_length")
@pytest.mark.parametrize("name", ["llama", "gemma3_text", "t5", "bart"])
@pytest.mark.parametrize("changes", EXPORTED)
def test_an_export_has_the_imported_generation_config(folder, tmp_path, name, changes):
    source = folder(name, **changes)
    ours = import_and_load(source, tmp_path)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    written = json.loads((out / "generation_config.json").read_text())
    original = json.loads((source / "generation_config.json").read_text())
    assert original.items() <= written.items()
    (tmp_path / "again").mkdir()
    again = import_and_load(out, tmp_path / "again").spec
    assert all(again.get(key) == ours.spec.get(key) for key in ("sampler", "filters"))
    assert again["model"] == ours.spec["model"]


SET = [
    {"sampler": {"type": "combined", "samplers": [
        {"type": "top-k", "k": 4, "temperature": 0.5}, {"type": "min-p", "p": 0.1}]}},
    {"sampler": {"type": "typical", "mass": 0.8}, "filters": [{"type": "no-repeat-ngram", "n": 2}]},
    {"sampler": {"type": "beam", "width": 3, "length_penalty": 0.5, "n_best": 2}, "filters": [
        {"type": "repetition-penalty", "penalty": 1.5},
        {"type": "suppressed-tokens", "tokens": [EOS], "stop": 6},
        {"type": "forced-end", "token": EOS}, {"type": "suppressed-tokens", "tokens": [4, 5]}]},
]  # fmt: skip


@pytest.mark.parametrize("sections", SET)
def test_an_export_has_the_sampler_and_the_filters_of_the_model(folder, tmp_path, sections):
    ours = import_and_load(folder("llama", temperature=0.3), tmp_path)
    spec = {**ours.spec, **sections}
    file = zoo.save(zoo.compose(spec), tmp_path / "new.safetensors")
    out = zoo.export_model(file, tmp_path / "out", to="llama")
    (tmp_path / "again").mkdir()
    again = import_and_load(out, tmp_path / "again").spec
    resolved = zoo.load_spec(spec).resolve()
    assert again["sampler"] == resolved["sampler"]
    assert again.get("filters") == resolved.get("filters")
