"""Small hostile maps, catalogues and lock files take little time and memory."""

import pytest
import torch
from cost_kit import assert_cheap

from zoo.hub.catalogue import read_catalogue
from zoo.hub.lock_file import read_lock
from zoo.interfaces.tensors import TensorMeta
from zoo.testing.laws.cost import supports_limits
from zoo_exchange.mapping import plan_tensors, read_map
from zoo_exchange.mapping.pattern import Pattern
from zoo_exchange.mapping.rules import Endpoint, Rule, TensorMap

pytestmark = pytest.mark.skipif(not supports_limits(), reason="limits of processes need Linux")
SIZE = 990_000


def _lines(head, line, count=9_900):
    """Return a text of about 1 MB: the line, formatted with 0, 1, ..., as often as it fits."""
    length = len(line.format(9_999)) + 1
    return head + "\n" + "\n".join(line.format(n) for n in range(min(SIZE // length, count)))


RENAME = "zoo: 1\nrename:"
MAPS = {
    "ranges": _lines(RENAME, ' "a{0}.{{e:0..4096}}": "b{0}.{{e:0..4096}}"'),
    "ranges on one side": _lines(RENAME, ' "a{0}.{{e:0..4096}}": "b{0}.{{e:0..4095}}"'),
    "one range often": _lines(RENAME, ' "a{0}' + "{{e:0..4096}}" * 30 + '": "b{0}"'),
    "words": _lines(RENAME, ' "a{0}.{{e:' + "|".join(f"w{n}" for n in range(200)) + '}}": b{0}'),
    "words in one name": f'{RENAME}\n "a{{e:{"|".join(map(str, range(155_000)))}}}": b',
    "values": "zoo: 1\nvalues: {{a: {}}}\nrename:\n x: {}".format("9" * 300, "$a" * (SIZE // 2)),
    "long values": _lines(
        "zoo: 1\nvalues: {a: " + "9" * 4_000 + "}\nrename:", " x{0}: " + "$a" * 60
    ),
    "many values": _lines("zoo: 1\nvalues:", " v{0}: 1"),
    "unknown values": _lines(
        "zoo: 1\nvalues: {" + ",".join(f"value{n}: 1" for n in range(200)) + "}\nrename:",
        " x{0}: $value{0}x", 9_000,
    ),
    "one rule of many names": "zoo: 1\nconvert:\n- theirs: [{}]\n  ours: [{}]".format(
        *(",".join(f'"{side}{{p{n}:a|b}}"' for n in range(9_900)) for side in "tu")
    ),
    "long range": f'{RENAME}\n "a.{{e:0..{"9" * 900_000}}}": b',
    "expressions": _lines("zoo: 1\ndrop:", ' - {{name: a{0}, export: 0, shape: ["$a' + "+1" * 90
                          + '"]}}'),
    "placeholders": _lines(RENAME, ' "a{0}' + ".{{n}}" * 30 + '": "b{0}' + ".{{n}}" * 30 + '"'),
    "operations": "zoo: 1\nconvert:\n- {theirs: a, ours: b, do: [" + "transpose," * 15_000 + "]}",
    "unknown operations": "zoo: 1\nconvert:\n- {theirs: a, ours: b, do: ["
    + ",".join(f"transposes{n}" for n in range(15_000)) + "]}",
}  # fmt: skip
DOCUMENTS = {
    "empty lists": "zoo: 1\nmodels: [" + "[]," * 300_000 + "]",
    "numbers": "zoo: 1\nmodels: [" + "1," * 450_000 + "]",
    "levels": "[" * SIZE,
    "mappings": _lines("zoo: 1\nmodels:", " a{0}: {{b: c}}", 4_900),
    "rows": _lines("zoo: 1\nmodels:", " - {{name: a{0}}}", 6_600),
    "unknown keys": _lines("zoo: 1\nmodels:", " - {{nam: a, spek: b, papers: c{0}}}", 2_800),
    "long keys": _lines("zoo: 1\nmodels:", " - {{" + "licences" * 12 + "{0}: 1}}", 6_600),
    "repeated names": _lines(
        "zoo: 1\nmodels:", " - {{name: a, spec: b, paper: c, licence: d}}", 2_200
    ),
    "repeated keys": _lines("zoo: 1\nmodels:", " a: 1"),
    "aliases": "zoo: 1\na: &a [1]\n" + "".join(f"b{n}: *a\n" for n in range(9_000)),
    "long string": 'zoo: 1\nmodels: "' + "\\n" * (SIZE // 2) + '"',
    "digits": "zoo: " + "9" * SIZE,
    "comments": "zoo: 1\n" + "#\n" * (SIZE // 2),
    "quotes": "'" * SIZE,
    "tags": "!a " * (SIZE // 3),
    "spaces": "zoo:" + " " * SIZE + "1",
}


def test_maps_take_little_time_and_memory(tmp_path):
    cases = {}
    for label, text in MAPS.items():
        assert len(text) < 1_000_000
        file = tmp_path / f"{label}.yaml"
        file.write_text(text)
        cases[label] = (read_map, file)
    assert_cheap(cases)


@pytest.mark.parametrize("reader", ["catalogue", "lock", "map"])
def test_documents_take_little_time_and_memory(tmp_path, reader):
    cases = {}
    for label, text in DOCUMENTS.items():
        assert len(text) < 1_000_000
        file = tmp_path / label / ("zoo.lock" if reader == "lock" else "a.yaml")
        file.parent.mkdir()
        file.write_text(text)
        cases[label] = {
            "catalogue": (read_catalogue, file),
            "lock": (read_lock, file.parent),
            "map": (read_map, file),
        }[reader]
    assert_cheap(cases)


@pytest.mark.slow
def test_many_tensors_and_rules_take_little_time():
    names = {f"m.{n}.w": TensorMeta((2, 2), torch.float32) for n in range(20_000)}
    for texts in (["m.{n}.w"] * 200, [f"{n}.{{n}}.w" for n in range(200)]):
        rules = [Rule([Endpoint(Pattern(t))], [Endpoint(Pattern(t))]) for t in texts]
        planned = (plan_tensors, TensorMap("map.yaml", rules), names, names)
        assert_cheap({texts[0]: planned}, cpu_seconds=8)
