"""Every key of a config is imported, does not change the logits, or is rejected by name."""

import pytest
import transformers as hf
from hf_model_kit import MODELS
from hf_switch_kit import ARCHITECTURES, build_switched, import_switched, switches

import zoo
from zoo.registry.component_registry import default_registry
from zoo_huggingface.config_fields import REQUIRED
from zoo_huggingface.config_keys import COMMON_IGNORED_KEYS, OLDER_DEFAULTS, read_defaults

IMPORTERS = {importer.name: importer for importer in default_registry().importers}
ATOL = 1e-4


@pytest.fixture(params=ARCHITECTURES)
def name(request):
    return request.param


def ignored(importer):
    return {**COMMON_IGNORED_KEYS, **importer.ignored_keys}


def rejection(name, key, value):
    """Return the message of the error that a changed config raises, or None."""
    config = MODELS[name][1].to_dict() | {key: value, "architectures": None}
    if key == "feed_forward_proj":
        config |= {"dense_act_fn": None, "is_gated_act": value.startswith("gated-")}
    try:
        IMPORTERS[name].spec(config)
    except zoo.ZooError as error:
        return str(error)
    return None


def test_ignored_keys_do_not_change_the_logits(name, tmp_path):
    changes = dict(pair for pair in switches(name) if pair[0] in ignored(IMPORTERS[name]))
    assert len(changes) >= 3
    theirs = build_switched(name, changes)
    assert theirs is not None
    assert import_switched(name, theirs, tmp_path) < ATOL


def test_each_key_gives_the_same_logits_or_is_rejected_by_name(name, tmp_path):
    problems, imported, rejected = [], 0, 0
    for index, (key, value) in enumerate(switches(name)):
        if key in ignored(IMPORTERS[name]):
            continue
        message = rejection(name, key, value)
        if message is not None:
            rejected += 1
            problems += [] if key in message else [f"{key}={value} is not named: {message}"]
            continue
        theirs = build_switched(name, {key: value})
        if theirs is None:
            continue
        folder = tmp_path / str(index)
        folder.mkdir()
        difference = import_switched(name, theirs, folder)
        imported += 1
        problems += [] if difference < ATOL else [f"{key}={value} differs by {difference}"]
    assert not problems, "\n".join(problems)
    assert imported >= 8
    assert rejected >= 5


def test_recorded_defaults_are_those_of_transformers(name):
    config = hf.CONFIG_MAPPING[name]().to_dict()
    recorded = {key: value for key, value in read_defaults(name).items() if key in config}
    known = {"_name_or_path", "model_type", "transformers_version"}
    assert {key: value for key, value in config.items() if key not in known} == recorded
    assert read_defaults(name).keys() - config.keys() <= OLDER_DEFAULTS.keys()


def test_defaults_of_fields_are_those_of_transformers(name):
    defaults = read_defaults(name)
    for field in IMPORTERS[name].fields:
        if field.default is not REQUIRED and field.key in defaults:
            assert field.default == defaults[field.key], field.key
    for required in IMPORTERS[name].required_values:
        assert required.value == defaults.get(required.key, required.value), required.key
