"""Random changes of config.json are rejected by name, or give the outputs of transformers."""

import json
import random
import shutil
import traceback
from functools import cache
from pathlib import Path

import pytest
from hf_model_kit import compare_logits, hf_model, load_original
from hf_switch_kit import (
    ARCHITECTURES,
    EXTRA_KEYS,
    NO_SWITCHES,
    VALUES,
)
from huggingface_hub.errors import StrictDataclassError

import zoo

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers warns of some values

IN_GATE, ALL = 1, 60
RELATIVE = 1e-5
REJECTIONS = (
    ValueError,
    TypeError,
    LookupError,
    RuntimeError,
    AttributeError,
    StrictDataclassError,
)
WORDS = ["relu", "gelu", "silu", "tanh", "none", "layer", "group", "linear", "default", "", "x"]
UNKNOWN = ["logit_scale", "clip_qkv", "qk_norm", "rope_type", "alibi", "x", "attention_scale"]
CASES = [
    pytest.param(name, number, marks=pytest.mark.slow if number >= IN_GATE else ())
    for name in ARCHITECTURES
    for number in range(ALL)
]


@cache
def original(name, root):
    """Return the folder of a small model; its generation config is removed."""
    folder = Path(root) / name
    hf_model(name).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return folder


def change_config(generator, config):
    """Return one to three random changes of a config."""
    keys = [key for key in config if key not in NO_SWITCHES]
    changes = {}
    for _ in range(generator.choice((1, 1, 2, 3))):
        key = generator.choice((*keys, *keys, *EXTRA_KEYS, *UNKNOWN))
        changes[key] = random_value(generator, key, config.get(key))
    return changes


def random_value(generator, key, value):
    """Return a value of the same type, or sometimes of another."""
    kind = type(value) if generator.random() < 0.8 else generator.choice((int, str, list, float))
    if key in VALUES and generator.random() < 0.5:
        return generator.choice(VALUES[key])
    if kind is bool:
        return not value
    if kind is int:
        return generator.choice((0, 1, 2, 3, 4, 5, 7, 16, 31, -1))
    if kind is float:
        return generator.choice((0.0, 0.3, 1.0, 2.5, 1e-3))
    if kind is str:
        return generator.choice(WORDS)
    if kind is list:
        return generator.choice(([], [1], [2, 2], ["x", "y"]))
    return generator.choice((None, True, {}, 3))


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_changed_config_is_rejected_by_name_or_has_the_same_outputs(
    name, number, tmp_path, tmp_path_factory
):
    folder = tmp_path / "theirs"
    shutil.copytree(original(name, tmp_path_factory.getbasetemp() / "fuzzed"), folder)
    file = folder / "config.json"
    config = json.loads(file.read_text())
    changes = change_config(random.Random(f"{name} {number}"), config)
    file.write_text(json.dumps({**config, **changes}))
    try:
        ours = zoo.load(zoo.import_model(folder, tmp_path / "model.safetensors"))
    except zoo.ZooError as error:
        rejection = error
    else:
        compare_with_transformers(name, folder, ours, changes)
        return
    named = any(key in str(rejection) for key in changes)
    assert named or names_a_tensor(rejection), f"{changes}: {rejection}"


def names_a_tensor(error):
    """Return whether an error says that the weights do not have the shapes of the config."""
    return isinstance(error, zoo.SpecError) or "weight" in str(error)


def compare_with_transformers(name, folder, ours, changes):
    """Compare the outputs, unless transformers rejects the config, if only in its calls."""
    try:
        actual, expected = compare_logits(name, ours, load_original(name, folder))
    except REJECTIONS as error:
        files = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)}
        if not any("transformers" in Path(file).parts for file in files):
            raise
        return
    assert (actual - expected).abs().max() <= RELATIVE * expected.abs().max(), changes
