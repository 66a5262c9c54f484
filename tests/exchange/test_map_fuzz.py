"""Whatever a map says, it is a plan or a list of faults, never a traceback."""

import copy

import torch
from hypothesis import HealthCheck, given, settings, strategies as st

from zoo.errors import SpecError
from zoo.exchange.mapping import OPERATIONS, plan, read_map
from zoo.interfaces.tensors import TensorMeta

SOUND = {
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


def _forms(**shapes):
    return {k.replace("_", "."): TensorMeta(tuple(v), torch.float32) for k, v in shapes.items()}


THEIRS = _forms(
    b_0_u=[2], b_0_v=[2], t=[3], f_0=[4, 4], g_0=[4, 4], s=[8, 4], g=[2], v=[2, 3], o=[2], p=[2],
    d=[1], e_0=[2], e_1=[2],
)  # fmt: skip
OURS = _forms(
    a_0_x=[2], a_0_y=[2], t=[3], j_0=[8, 4], q=[2, 4], k=[8], w=[3, 3], sum=[1, 2], z=[4],
)  # fmt: skip
SPEC = {"model": {"width": 4}}

odd = st.one_of(
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
        ]
    ),
    st.sampled_from([*OPERATIONS, "t", "q", "omit", "zeros", "halves"]),
    st.text(max_size=4),
    st.just([]),
    st.just({}),
    st.lists(st.integers(-2, 9), max_size=4),
    st.sampled_from([{"rotary": {"heads": 3}}, {"split": {"sections": [1]}}, {"name": "t"}]),
)


def _places(data, key_path=()):
    yield key_path
    if not isinstance(data, (dict, list)):
        return
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield from _places(value, (*key_path, key))


PLACES = [key_path for key_path in _places(SOUND) if key_path]


def _put(data, key_path, value, rename):
    """Another value at a place, or another key for what is there; nothing if it is gone."""
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


def test_the_sound_map_is_sound():
    tensor_map = read_map(copy.deepcopy(SOUND), spec=SPEC)
    made = plan(tensor_map, THEIRS, OURS)
    assert made.targets.keys() == OURS.keys()
    assert plan(tensor_map.reversed(), OURS, None).targets.keys() >= {"m.b.0.u", "s", "e.0"}


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(PLACES), odd, st.booleans()), min_size=1, max_size=3))
def test_a_spoilt_map_is_a_plan_or_a_list_of_faults(changes):
    data = copy.deepcopy(SOUND)
    for key_path, value, rename in changes:
        _put(data, key_path, value, rename)
    for forward in (True, False):
        try:
            tensor_map = read_map(data, spec=SPEC)
            planned = (
                plan(tensor_map, THEIRS, OURS)
                if forward
                else plan(tensor_map.reversed(), OURS, None)
            )
            tensors = {n: torch.ones(f.shape) for n, f in (THEIRS if forward else OURS).items()}
            metas = {
                name: TensorMeta.of(tensor) for name, tensor in planned.run(tensors.__getitem__)
            }
            assert metas == planned.targets
        except SpecError:
            continue
