"""Jobs on specs: files that are opened, and candidates for a slot."""

import copy

import pytest

from zoo.errors import SpecError, ZooError

pytest.importorskip("starlette", reason="starlette is not installed")
from zoo_ui.jobs.specs import check_candidate, check_data, open_spec, replace_value

SCORER = ("model", "decoder", "attention", "scorer")


@pytest.fixture(scope="module")
def spec():
    return open_spec({}, source="bahdanau-reversal")["data"]


def _candidate(data, path, *values):
    return check_candidate({}, data=data, path=path, values=values)


def test_a_value_is_set_as_the_form_sets_it():
    data = {"position": "rotary", "metrics": ["bleu"]}
    assert replace_value(data, ["position", "scaling"], "linear") == {
        "position": {"type": "rotary", "scaling": "linear"},
        "metrics": ["bleu"],
    }
    assert replace_value(data, ["metrics", 1], "chrf")["metrics"] == ["bleu", "chrf"]
    assert replace_value(data, ["metrics", 0], "chrf")["metrics"] == ["chrf"]
    assert replace_value(data, ["train", "filters", 0], "length")["train"] == {
        "filters": ["length"]
    }
    assert data == {"position": "rotary", "metrics": ["bleu"]}
    with pytest.raises(ZooError, match="a list with 1 entries has no entry 3 to set"):
        replace_value(data, ["metrics", 3], "chrf")


def test_a_slot_inside_a_part_that_is_only_named():
    data = open_spec({}, source="llama-tiny")["data"]
    assert data["model"]["decoder"]["position"] == "rotary"
    path = ["model", "decoder", "position", "scaling"]
    answer = _candidate(data, path, "linear", {"type": "linear", "factor": 2})
    assert answer["ok"]
    assert answer["value"] == {"type": "linear", "factor": 2}
    assert _candidate(data, path, "linear")["needs"] == ["factor"]


def test_parts_that_only_lack_keys_fit():
    value = {"type": "seq2seq", "source": "token"}
    answer = _candidate({"zoo": 1, "name": "mine"}, ["model"], value)
    assert answer["ok"]
    assert answer["parameters"] is None
    assert answer["needs"] == ["source.vocab", "source.dim", "encoder", "decoder"]


def test_problems_of_other_sections_do_not_count(spec):
    data = {key: value for key, value in spec.items() if key != "name"} | {"train": {"stepz": 1}}
    assert _candidate(data, SCORER, "additive") == _candidate(spec, SCORER, "additive")
    wrong = _candidate(data, SCORER, {"type": "additive", "hidden": -1})
    assert not wrong["ok"]
    assert wrong["reason"].startswith("hidden: is -1")


def test_only_new_problems_in_the_slot_count(spec):
    data = copy.deepcopy(spec)
    data["model"]["encoder"]["hidden"] = -4
    answer = _candidate(data, SCORER, "additive")
    assert answer["ok"]
    assert answer["parameters"] is None
    assert not _candidate(data, SCORER, "absent")["ok"]


def test_problems_elsewhere_count_if_the_spec_passes_without_the_part(spec):
    data = copy.deepcopy(spec)
    data["model"]["decoder"]["attention"]["scorer"] = "dot"
    encoder = {**data["model"]["encoder"], "hidden": 7}
    answer = _candidate(data, ["model", "encoder"], encoder)
    assert not answer["ok"]
    assert answer["reason"].startswith("model.decoder.attention")


def test_a_file_that_is_not_a_mapping_is_not_a_spec(tmp_path):
    (tmp_path / "list.yaml").write_text("just a text\n")
    with pytest.raises(SpecError, match=r"list\.yaml:1:1: is not a spec: it should be a mapping"):
        open_spec({}, source=str(tmp_path / "list.yaml"))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["name"], "a b", "is 'a b', but should start with a letter or digit"),
        (["model", "source", "vocab"], 10**20, "but should be an integer of at most 64 bits"),
    ],
)
def test_messages_have_no_patterns_and_no_errors_of_torch(spec, path, value, message):
    (problem,) = check_data(replace_value(spec, path, value))["errors"]
    assert problem["path"] == ".".join(path)
    assert message in problem["message"]
