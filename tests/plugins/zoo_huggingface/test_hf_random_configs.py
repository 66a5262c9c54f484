"""Random combinations of config values: logits, generated tokens and exports of transformers."""

import random

import pytest
import torch
from hf_model_kit import compare_logits, generate_both, load_original, prompts
from hf_models import SAME_CODE
from hf_switch_kit import ARCHITECTURES, accepted_switches, build_switched
from safetensors import safe_open

import zoo

IN_GATE, ALL = 1, 40
RELATIVE = 1e-5
CASES = [
    pytest.param(
        name,
        number,
        marks=pytest.mark.slow if number >= IN_GATE or name not in SAME_CODE else (),
    )
    for name in ARCHITECTURES
    for number in range(ALL)
]


def random_model(name, number, folder):
    """Return an imported model of random config values, the original, and its folder."""
    generator = random.Random(f"{name} {number}")
    for attempt in range(100):
        chosen = [pair for pair in accepted_switches(name) if generator.random() < 0.3]
        theirs = build_switched(name, dict(chosen))
        if theirs is None:
            continue
        source = folder / str(attempt)
        theirs.save_pretrained(source)
        (source / "generation_config.json").unlink(missing_ok=True)
        try:
            file = zoo.import_model(source, folder / "model.safetensors")
        except zoo.ZooError:  # a value that is not supported; another combination is tried
            continue
        return file, theirs, source
    raise AssertionError("no combination was accepted")


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_random_config_has_the_outputs_of_transformers(name, number, tmp_path):
    file, theirs, source = random_model(name, number, tmp_path)
    ours = zoo.load(file)
    actual, expected = compare_logits(name, ours, theirs)
    assert (actual - expected).abs().max() <= RELATIVE * expected.abs().max()
    if ours.generation_input is not None and theirs.can_generate():
        generated = generate_both(ours, theirs, prompts(20, low=6))
        assert generated[0] == generated[1]
    exported = zoo.export_model(file, tmp_path / "exported")
    keys = read_keys(source)
    if name == "pegasus":  # transformers computes sinusoidal positions when the file has none
        keys = {key for key in keys if "embed_positions" not in key}
    assert read_keys(exported) == keys
    again = load_original(name, exported)
    back = compare_logits(name, ours, again)[1]
    if any("parametrizations" in key for key in again.state_dict()):  # a norm is computed again
        torch.testing.assert_close(back, expected, rtol=RELATIVE, atol=RELATIVE)
    else:
        assert torch.equal(back, expected)


def read_keys(folder):
    with safe_open(folder / "model.safetensors", "pt") as file:
        return set(file.keys())
