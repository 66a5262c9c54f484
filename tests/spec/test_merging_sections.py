"""Merging of documents key by key, and overrides."""

import pytest
from spec_kit import BASE, extended, single_problem
from timing_kit import assert_fast

from zoo import SpecError, check, load_spec
from zoo.spec.spec import draft_spec


@pytest.fixture
def base(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path / "base.yaml"


def test_mappings_are_merged_key_by_key(base):
    data = extended(base, "name: child\nmodel: {encoder: {hidden: 32}}\n")
    assert data["name"] == "child"
    assert data["model"]["encoder"]["hidden"] == 32
    assert data["model"]["encoder"]["layers"] == 2
    assert data["model"]["source"]["vocab"] == 16


def test_naming_another_type_replaces_the_part(base):
    data = extended(base, "model: {encoder: {type: lstm, hidden: 4}}\n")
    assert data["model"]["encoder"]["type"] == "recurrent:lstm"
    assert data["model"]["encoder"]["layers"] == 1


def test_naming_the_same_type_merges(base):
    data = extended(base, "model: {encoder: {type: gru, hidden: 4}}\n")
    assert data["model"]["encoder"]["layers"] == 2


def test_a_name_is_merged_with_a_mapping(base):
    data = extended(base, "model: {decoder: {attention: {scorer: {hidden: 5}}}}\n")
    scorer = data["model"]["decoder"]["attention"]["scorer"]
    assert scorer == {"type": "bahdanau:additive", "hidden": 5, "project": True}


def test_a_name_replaces_a_mapping(base):
    child = base.parent / "child.yaml"
    child.write_text("extends: base.yaml\nmodel: {encoder: lstm}\n")
    problem = single_problem(child)
    assert problem.message == "key 'hidden' is missing"
    assert (problem.place.file, problem.place.line, problem.place.column) == (str(child), 2, 18)


def test_lists_are_replaced(base):
    data = extended(base, "metrics: [sequence-accuracy]\n")
    assert [m["type"] for m in data["metrics"]] == ["metrics:sequence-accuracy"]


def test_null_removes_an_optional_part(base):
    assert extended(base, "sampler: greedy\n")["sampler"] is not None
    assert extended(base, "sampler: ~\n")["sampler"] is None


def test_overrides_are_applied_in_order(base):
    overrides = [
        "model.encoder.hidden=32",
        "name=other",
        "model.encoder.hidden=64",
        "sampler=greedy",
    ]
    data = load_spec(base, overrides=overrides).resolve()
    assert (data["model"]["encoder"]["hidden"], data["name"]) == (64, "other")
    assert data["model"]["encoder"]["layers"] == 2
    assert data["sampler"]["type"] == "sampling:greedy"


@pytest.mark.parametrize("empty", ["~", "null", ""])
def test_an_override_can_remove_an_optional_part(base, empty):
    base.write_text(BASE + "sampler: greedy\n")
    assert load_spec(base, overrides=[f"sampler={empty}"]).sections.sampler is None


@pytest.mark.parametrize(
    ("override", "path", "message"),
    [
        ("name", "", "should be KEY.KEY=VALUE"),
        ("=1", "", "should be KEY.KEY=VALUE"),
        ("a..b=1", "", "should be KEY.KEY=VALUE"),
        ("model.encoder.hidden=x", "model.encoder.hidden", "should be a valid integer"),
        ("model.encoder.hiden=3", "model.encoder.hiden", "did you mean 'hidden'?"),
        ("model.encoder=lstm", "model.encoder", "key 'hidden' is missing"),
        ("model.encoder.type=lstm", "model.encoder", "key 'hidden' is missing"),
        ("model.encoder.hidden.a.b=1", "model.encoder.hidden", "is a mapping, but should be a"),
        ("model.encoder={hidden: 1, hidden: 2}", "model.encoder.hidden", "duplicate key"),
        ("metrics.0=bleu", "metrics", "should be a list, but is a mapping"),
        ("name=[", "", "invalid YAML"),
        ("sampler=gredy", "sampler", "no sampler named 'gredy'; did you mean 'greedy'?"),
    ],
)
def test_a_problem_of_an_override_names_the_option(base, override, path, message):
    problem = single_problem(base, override)
    assert problem.place.file == f"--set {override}"
    assert problem.path == path
    assert message in problem.message


def test_problems_of_all_overrides_are_reported_together(base):
    problems = draft_spec(base, overrides=["bad", "name=[", "zoo=2"]).problems
    assert {p.place.file for p in problems} >= {"--set bad", "--set name=["}


def test_a_deep_override_is_rejected_quickly(base):
    deep, deeper = ("model." + "a." * depth + "a=1" for depth in (2_000, 8_000))
    assert assert_fast(lambda: draft_spec(base, overrides=[deeper]).problems)
    assert assert_fast(lambda: draft_spec(base, overrides=[deep, deep]).problems)


def test_many_keys_are_merged_quickly(base):
    base.write_text("".join(f"a{i}: 1\n" for i in range(3_000)))
    child = base.parent / "child.yaml"
    child.write_text("extends: base.yaml\n" + "".join(f"b{i}: 1\n" for i in range(3_000)))
    problems = assert_fast(lambda: draft_spec(child, overrides=["c=1"]).problems)
    assert len(problems) > 6_000


TRAIN = """
zoo: 1
name: base
model: {type: seq2seq, source: {type: token, vocab: 9, dim: 4}, encoder: {type: gru, hidden: 4},
  decoder: {type: plain-rnn, hidden: 4}}
objective: cross-entropy
preprocessing: {source: text, target: text}
train:
  data: {type: parallel-text, source: a, target: b}
  optimiser: {type: adam, lr: 0.1}
"""
ALTERNATIVES = [
    ("epochs: 3", "train.steps=5", {"steps": 5, "epochs": None}),
    ("steps: 3", "train.epochs=5", {"steps": None, "epochs": 5}),
    ("steps: 3", "train={epochs: 5}", {"steps": None, "epochs": 5}),
    ("{steps: 3, batch: {items: 8}}", "train.batch.tokens=90", {"items": None, "tokens": 90}),
    ("{steps: 3, batch: {tokens: 8}}", "train.batch={items: 9}", {"items": 9, "tokens": None}),
    ("{steps: 3, average: {ema: 0.9}}", "train.average.last=4", {"ema": None, "last": 4}),
    ("{steps: 3, average: {last: 3}}", "train.average.best=4", {"best": 4, "last": None}),
]


@pytest.mark.parametrize(("first", "override", "expected"), ALTERNATIVES)
@pytest.mark.parametrize("way", ["override", "extends"])
def test_a_key_replaces_its_alternatives(tmp_path, way, first, override, expected):
    lines = first.strip("{}") if first.startswith("{") else first
    if first.startswith("{"):
        lines = lines.replace(", batch", "\n  batch").replace(", average", "\n  average") + "}"
    (tmp_path / "base.yaml").write_text(f"{TRAIN}  {lines}\n")
    if way == "override":
        spec = load_spec(tmp_path / "base.yaml", overrides=[override])
    else:
        *keys, last = override.partition("=")[0].split(".")
        text = "{" + f"{last}: {override.partition('=')[2]}" + "}"
        for key in reversed(keys):
            text = "{" + f"{key}: {text}" + "}"
        (tmp_path / "child.yaml").write_text(f"extends: base.yaml\n{text[1:-1]}\n")
        spec = load_spec(tmp_path / "child.yaml")
    train = spec.resolve()["train"]
    section = train if "epochs" in expected else train[override.split(".")[1].partition("=")[0]]
    assert {key: section.get(key) for key in expected} == expected


def test_both_alternatives_in_one_place_are_an_error(tmp_path):
    (tmp_path / "base.yaml").write_text(f"{TRAIN}  epochs: 3\n")
    with pytest.raises(SpecError, match="exactly one of 'steps' and 'epochs' must be set"):
        check(tmp_path / "base.yaml", overrides=["train={steps: 2, epochs: 2}"])
    with pytest.raises(SpecError, match="exactly one of 'steps' and 'epochs' must be set"):
        check(tmp_path / "base.yaml", overrides=["train.epochs=null"])
