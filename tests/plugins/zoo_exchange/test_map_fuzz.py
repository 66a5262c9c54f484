"""Any map yields a plan or a SpecError, never another exception."""

import copy

import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from map_kit import metas, metas_of

from zoo.errors import SpecError
from zoo_exchange.mapping import OPERATIONS, plan_tensors, read_map

VALID = {
    "zoo": 1,
    "values": {"heads": 2, "width": "model.width"},
    "prefix": "m.",
    "endings": {".g": ".w"},
    "rename": {"a.{n}.{p:x|y}": "m.b.{n}.{p:u|v}", "t": "t"},
    "convert": [
        {
            "theirs": ["f.{n}", {"name": "g.{n}", "do": ["transpose"]}],
            "ours": "j.{n}",
            "do": [
                {"join": {"dim": 0, "sections": ["$width", 4]}},
                {"gates": {"theirs": "ab", "ours": "ba"}},
            ],
        },
        {
            "theirs": "s",
            "ours": ["q", {"name": "k", "do": [{"reshape": {"theirs": [2, 4], "ours": [8]}}]}],
            "do": [
                {"rotary": {"heads": "$heads", "theirs": "halves", "ours": "interleaved"}},
                {"slice": {"start": 0, "stop": 4, "size": 8, "export": "zeros"}},
                {"split": {"dim": 0}},
                {"cast": "float64"},
            ],
        },
        {"theirs": ["g", "v"], "ours": "w", "do": [{"weight-norm": 0}, {"pad": {"after": 1}}]},
        {
            "theirs": ["o", "p"],
            "ours": "sum",
            "do": [{"add": {"export": "zeros"}}, {"unsqueeze": 0}],
        },
    ],
    "fill": {"z": "ones"},
    "drop": [{"name": "d", "export": "omit"}, {"name": "e.{n:0..2}", "export": 0, "shape": [2]}],
}  # fmt: skip


THEIRS = metas(
    b__0__u=[2], b__0__v=[2], t=[3], f__0=[4, 4], g__0=[4, 4], s=[8, 4], g=[2], v=[2, 3], o=[2],
    p=[2], d=[1], e__0=[2], e__1=[2],
)  # fmt: skip
OURS = metas(
    a__0__x=[2], a__0__y=[2], t=[3], j__0=[8, 4], q=[2, 4], k=[8], w=[3, 3], sum=[1, 2], z=[4],
)  # fmt: skip
SPEC = {"model": {"width": 4}}

invalid_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 9),
    st.floats(),
    st.sampled_from(
        [
            "",
            "{",
            "{n}",
            "{n}{n}",
            "{m}",
            "a.{n+m}",
            "{p:a|b}",
            "{e:0..3}",
            "$heads",
            "$",
            "$heads//0",
            "{n+1}",
            "{n:0..3}.{n+1}",
        ]
    ),
    st.sampled_from([*OPERATIONS, "t", "q", "omit", "zeros", "halves"]),
    st.text(max_size=4),
    st.just([]),
    st.just({}),
    st.lists(st.integers(-2, 9), max_size=4),
    st.sampled_from([{"rotary": {"heads": 3}}, {"split": {"sections": [1]}}, {"name": "t"}]),
)


def _key_paths(data, key_path=()):
    yield key_path
    if not isinstance(data, (dict, list)):
        return
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield from _key_paths(value, (*key_path, key))


KEY_PATHS = [key_path for key_path in _key_paths(VALID) if key_path]


def _set(data, key_path, value, rename):
    """Replace the value or the key at a path, if it still exists."""
    try:
        for key in key_path[:-1]:
            data = data[key]
        old = data.pop(key_path[-1])
        if isinstance(data, list):
            data.insert(key_path[-1], value)
        else:
            data[str(value) if rename else key_path[-1]] = old if rename else value
    except (KeyError, IndexError, TypeError, AttributeError):
        return


def test_the_unchanged_map_is_valid():
    tensor_map = read_map(copy.deepcopy(VALID), spec=SPEC)
    assert plan_tensors(tensor_map, THEIRS, OURS).targets.keys() == OURS.keys()
    exported = plan_tensors(tensor_map.inverse(), OURS, None)
    assert exported.targets.keys() >= {"m.b.0.u", "s", "e.0"}


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.sampled_from(KEY_PATHS), invalid_values, st.booleans()), min_size=1, max_size=3
    )
)
def test_a_changed_map_yields_a_plan_or_a_spec_error(changes):
    data = copy.deepcopy(VALID)
    for key_path, value, rename in changes:
        _set(data, key_path, value, rename)
    for forward in (True, False):
        try:
            tensor_map = read_map(data, spec=SPEC)
            sources = THEIRS if forward else OURS
            plan = (
                plan_tensors(tensor_map, THEIRS, OURS)
                if forward
                else plan_tensors(tensor_map.inverse(), OURS, None)
            )
            tensors = {name: torch.ones(meta.shape) for name, meta in sources.items()}
            assert metas_of(dict(plan.run(tensors.__getitem__))) == plan.targets
        except SpecError:
            continue
