"""Reading of map files: every problem is reported at once, with its place."""

import pytest
from map_kit import assert_problems, write_map

from zoo.errors import SpecError
from zoo_exchange.mapping import read_map

SECTIONS = "(available: zoo, description, values, prefix, endings, rename, convert, fill, drop)"
OPERATIONS = (
    "(available: add, cast, copy, gates, join, merge, pad, permute, reshape, rotary, slice, split, "
    "squeeze, transpose, unsqueeze, weight-norm)"
)


def test_an_invalid_section_does_not_hide_the_problems_of_others(tmp_path):
    path = write_map(
        tmp_path,
        """
        renam: {}
        rename:
          a.{n: b
        convert:
          - {theirs: a}
        fill: {g: nothing}
        """,
    )
    assert_problems(
        lambda: read_map(path),
        path,
        [
            ("3:1: renam", "'renam'", "'rename'", SECTIONS),
            ("7:5: convert[0]", "'ours'"),
            ("8:11: fill.g", "'nothing'", "'zeros', 'ones' or 'identity'"),
            ("8:11: fill.g", "'nothing'", "number"),
            ("5:3: rename.a.{n", "'a.{n'"),
        ],
    )


def test_all_problems_inside_sections_are_reported(tmp_path):
    path = write_map(
        tmp_path,
        """
        values: {heads: model.none, kv: [model.a, model.b]}
        rename:
          a.{n: b
          c.{n}: d.{m}
          e: "f.$nope"
        convert:
          - {theirs: a, ours: b, do: [transpos, {rotary: {head: 2}}, 3, {cast: {to: int8}}]}
          - {theirs: [], ours: b}
          - {theirs: a, ours: b, do: [{permute: [1, 1]}, {squeeze: x}, {split: 3}]}
          - {theirs: [{nam: a}], ours: b, do: [{slice: {start: $heads}}]}
        drop:
          - {name: h, export: zeros}
        """,
    )
    assert_problems(
        lambda: read_map(path),
        path,
        [
            ("3:17: values.heads", "integer", "model.none"),
            ("3:33: values.kv", "integer", "model.a or model.b"),
            ("5:3: rename.a.{n", "'a.{n'"),
            ("6:3: rename.c.{n}", "'m'", "{m:0|1|2}", "'convert'"),
            ("7:3: rename.e", "'nope'"),
            ("9:31: convert[0].do[0]", "'transpos'", "'transpose'", OPERATIONS),
            ("9:51: convert[0].do[1].rotary.head", "'head'", "'heads'", "heads, theirs, ours, dim"),
            ("9:50: convert[0].do[1].rotary", "'theirs'"),
            ("9:50: convert[0].do[1].rotary", "'ours'"),
            ("9:62: convert[0].do[2]", "'transpose'", "'rotary: {heads: 8, …}'"),
            ("9:77: convert[0].do[3].cast.to", "'int8'", "'float64', 'float32', 'float16'"),
            ("10:14: convert[1].theirs", "tensor"),
            ("11:41: convert[2].do[0].permute", "[1, 1]"),
            ("11:60: convert[2].do[1].squeeze.dim", "'x'", "integer"),
            ("11:72: convert[2].do[2].split", "3"),
            ("12:16: convert[3].theirs[0].nam", "'nam'", "'name'"),
            ("12:56: convert[3].do[0].slice.start", "'heads'"),
            ("14:5: drop[0]", "'export: zeros'", "'shape'", "{n:0..8}"),
        ],
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("list.yaml", "- a\n", "mapping.*list"),
        ("tag.yaml", "zoo: !!python/name:os.system\n", "python/name"),
        ("none.yaml", None, "none.yaml: no such file$"),
    ],
)
def test_a_file_that_is_not_a_map_raises(tmp_path, name, text, message):
    if text:
        (tmp_path / name).write_text(text)
    with pytest.raises(SpecError, match=message):
        read_map(tmp_path / name)
