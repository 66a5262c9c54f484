"""Any input to a check gives a report or a list of problems."""

import copy
import re

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings, strategies as st

import zoo
from zoo.errors import SpecError
from zoo.registry.component_registry import default_registry
from zoo.spec.report import Report
from zoo.spec.spec import load_spec

REGISTRY = default_registry()
DATA = load_spec("bahdanau-reversal").resolve()
TEXTS = [
    yaml.safe_dump(DATA, sort_keys=False).encode(),
    REGISTRY.spec("bahdanau-reversal").read_bytes(),
    REGISTRY.spec("bahdanau-2015").read_bytes(),
]

# The time of a check is proportional to these, about 50 ms each, so they are limited.
COUNTS = ("layers", "heads")
MAX_COUNT = 2

quick = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)

NAMES = sorted({entry.name for entry in REGISTRY.components()})
KEYS = ["type", "model", "hidden", "layers", "heads", "dim", "scorer", "metrics", "extends", "zoo"]

words = st.one_of(
    st.sampled_from(NAMES + KEYS),
    st.sampled_from(["", ":", "a:b", "recurrent:gru", "\0", "\ud800", "x" * 10_000, "İ", "none"]),
    st.text(max_size=12),
)
numbers = st.one_of(
    st.integers(-3, 70),
    st.sampled_from([2**31, 2**40, 2**62, 2**63, 2**64, 10**39, 10**400, -(10**400)]),
    st.floats(),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, words, st.binary(max_size=4))
keys = st.one_of(words, words, words, st.integers(), st.none(), st.booleans(), st.floats())
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.tuples(inner, inner),
        st.fixed_dictionaries({"type": st.sampled_from(NAMES), "hidden": inner}),
    ),
    max_leaves=8,
)


def assert_report_or_problems(source, overrides=()) -> None:
    problems = []
    try:
        report = zoo.check(source, overrides=overrides)
    except SpecError as error:
        report, problems = None, error.problems
    assert problems or isinstance(report, Report)
    for problem in problems:
        assert problem.message
        assert len(problem.message) < 2_000


def containers(data) -> list:
    """Return every mapping and list in the data, outer ones first."""
    if not isinstance(data, (dict, list)):
        return []
    inner = data.values() if isinstance(data, dict) else data
    return [data, *(found for value in inner for found in containers(value))]


def mutate(draw, data) -> None:
    """Delete, copy, rename, move or replace one value of the data."""
    place = draw(st.sampled_from([c for c in containers(data) if c]))
    at = draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
    how = draw(st.sampled_from(["delete", "copy", "rename", "move", "replace", "replace", "add"]))
    if how == "replace":
        alike = isinstance(place[at], (int, float)) and draw(st.booleans())
        place[at] = draw(numbers if alike else values)
    elif how == "move":
        place[at] = copy.deepcopy(draw(st.sampled_from(containers(data))))
    elif isinstance(place, list):
        place.insert(at, draw(values)) if how == "add" else place.pop(at)
    elif how == "add":
        place[draw(words)] = draw(values)
    else:
        new = draw(st.one_of(words, st.just(f"{at}s"), st.just(str(at)[1:])))
        place[new] = place[at] if how == "copy" else place.pop(at)
        if how == "delete":
            del place[new]


def limit_counts(data) -> None:
    for place in containers(data):
        if isinstance(place, dict):
            for key in COUNTS:
                if isinstance(place.get(key), int):
                    place[key] = min(place[key], MAX_COUNT)


@st.composite
def mutated_data(draw):
    data = copy.deepcopy(DATA)
    for _ in range(draw(st.integers(1, 3))):
        mutate(draw, data)
        assume(isinstance(data, dict) and data)
    limit_counts(data)
    return data


@st.composite
def other_numbers(draw):
    """The same spec with other numbers, many of which only the components can reject."""
    data = copy.deepcopy(DATA)
    entries = [(c, k) for c in containers(data) if isinstance(c, dict) for k in c]
    numeric = [(c, k) for c, k in entries if type(c[k]) in (int, float) and k != "zoo"]
    for place, key in draw(st.lists(st.sampled_from(numeric), min_size=1, max_size=3)):
        place[key] = draw(numbers)
    limit_counts(data)
    return data


@st.composite
def mutated_text(draw) -> bytes:
    text = bytearray(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        how = draw(st.sampled_from(["flip", "insert", "cut", "truncate", "repeat"]))
        if how == "flip" and at < len(text):
            text[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "insert":
            text[at:at] = draw(
                st.one_of(
                    st.binary(min_size=1, max_size=3),
                    st.sampled_from(
                        [b"\t", b"\n", b"  ", b"- ", b"&a ", b"*a", b"? ", b"!!x ", b"'"]
                    ),
                )
            )
        elif how == "cut":
            del text[at : at + draw(st.integers(1, 20))]
        elif how == "truncate":
            del text[at:]
        else:
            text[at:at] = text[at : at + draw(st.integers(1, 40))]
    assume(not re.search(rb"(layers|heads)\W+\d\d", text))
    return bytes(text)


@given(mutated_data())
@settings(quick, max_examples=150)
def test_mutated_data_gives_a_report_or_problems(data):
    assert_report_or_problems(data)


@given(other_numbers())
@settings(quick, max_examples=50)
def test_other_numbers_give_a_report_or_problems(data):
    assert_report_or_problems(data)


@given(raw=mutated_text())
@settings(quick, max_examples=70)
def test_mutated_text_gives_a_report_or_problems(tmp_path_factory, raw):
    file = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_bytes(raw)
    assert_report_or_problems(file)


@given(st.binary(max_size=200))
@settings(quick, max_examples=150)
def test_random_bytes_give_problems(tmp_path_factory, raw):
    file = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_bytes(raw)
    with pytest.raises(SpecError):
        zoo.check(file)


paths = st.lists(st.one_of(st.sampled_from(["model", "encoder", "decoder", "hidden"]), words))


@given(st.lists(st.tuples(paths, words), min_size=1, max_size=3))
@settings(quick, max_examples=60)
def test_random_overrides_give_a_report_or_problems(examples):
    overrides = [f"{'.'.join(path)}={value}" for path, value in examples]
    assume(not any(re.search(r"(layers|heads)\W+\d\d", text) for text in overrides))
    assert_report_or_problems("bahdanau-reversal", overrides)


@given(st.one_of(words, st.text()))
@settings(quick, max_examples=60)
def test_random_names_of_specs_give_a_report_or_problems(name):
    assert_report_or_problems(name)


@given(data=st.dictionaries(keys, values, max_size=5))
@settings(quick, max_examples=60)
def test_random_data_gives_problems(data):
    with pytest.raises(SpecError):
        zoo.check(data)
