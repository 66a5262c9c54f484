"""Maps as files: what they do, what they refuse, each fault with its line, all at once."""

import re
import textwrap
from pathlib import Path

import pytest
import torch

from zoo.errors import SpecError
from zoo.exchange.mapping import plan, read_map
from zoo.interfaces.tensors import TensorMeta


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "map.yaml"
        path.write_text("zoo: 1\n" + textwrap.dedent(text))
        return path

    return write


SECTIONS = "(available: zoo, description, values, prefix, endings, rename, convert, fill, drop)"
OPERATIONS = (
    "(available: add, cast, gates, join, pad, permute, reshape, rotary, slice, split, squeeze, "
    "transpose, unsqueeze, weight-norm)"
)


def _forms(**shapes):
    return {
        name.replace("__", "."): TensorMeta(tuple(shape), torch.float32)
        for name, shape in shapes.items()
    }


def _planned(path, theirs, ours, **options):
    spec = options.pop("spec", None)
    return plan(read_map(path, spec=spec), _forms(**theirs), _forms(**ours), **options)


def _faults(call, path):
    with pytest.raises(SpecError) as caught:
        call()
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


def _run(planned, tensors):
    return dict(planned.run(tensors.__getitem__))


def test_names_indices_and_words_lead_tensors_home(written):
    path = written("""
        rename:
          table: emb
          blocks.{n}.{p:weight|bias}: layer.{n+1}.{p:w|b}
        """)
    theirs = {"emb": [3, 2], **{f"layer__{n}__{p}": [n] for n in (1, 2) for p in "wb"}}
    ours = {
        "table": [3, 2],
        **{f"blocks__{n}__{p}": [n + 1] for n in (0, 1) for p in ("weight", "bias")},
    }
    found = {
        target: job.sources[0]
        for job in _planned(path, theirs, ours).jobs
        for target in job.targets
    }
    assert found == {
        "table": "emb",
        "blocks.0.weight": "layer.1.w",
        "blocks.0.bias": "layer.1.b",
        "blocks.1.weight": "layer.2.w",
        "blocks.1.bias": "layer.2.b",
    }


FUSED = """
    values: {heads: model.heads, kv: [model.kv_heads, model.heads]}
    convert:
      - theirs: l.{n}.qkv
        do: [transpose, {split: {sections: [$heads * 2, $kv * 2, 2 * $kv]}}]
        ours:
          - {name: "b.{n}.q", do: [{rotary: {heads: $heads, theirs: interleaved, ours: halves}}]}
          - b.{n}.k
          - b.{n}.v
    """


@pytest.mark.parametrize(("kv_heads", "width"), [(1, 8), (None, 12)])
def test_fused_weights_come_apart_by_values_of_the_spec_and_together_again(
    written, kv_heads, width
):
    path = written(FUSED)
    spec = {"model": {"heads": 2, "kv_heads": kv_heads}}
    tensor_map = read_map(path, spec=spec)
    whole = torch.arange(3.0 * width).reshape(3, width)
    small = 2 * (kv_heads or 2)
    ours = _forms(b__0__q=[4, 3], b__0__k=[small, 3], b__0__v=[small, 3])
    made = _run(plan(tensor_map, _forms(l__0__qkv=[3, width]), ours), {"l.0.qkv": whole})
    assert torch.equal(made["b.0.k"], whole.T[4 : 4 + small])
    metas = {name: TensorMeta.of(tensor) for name, tensor in made.items()}
    back = _run(plan(tensor_map.reversed(), metas, None), made)
    assert torch.equal(back["l.0.qkv"], whole)


def test_a_choice_on_one_side_joins_all_its_tensors(written):
    path = written("""
        convert:
          - theirs: conv{h:|_3|_6}/kernel
            ours: heads
            do: [{squeeze: 0}, transpose, join]
        """)
    tensor_map = read_map(path)
    tensors = {
        f"conv{suffix}/kernel": torch.full((1, 4, 2), float(i))
        for i, suffix in enumerate(("", "_3", "_6"))
    }
    metas = {name: TensorMeta.of(tensor) for name, tensor in tensors.items()}
    made = _run(plan(tensor_map, metas, _forms(heads=[6, 4])), tensors)
    assert made["heads"][:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    back = _run(plan(tensor_map.reversed(), _forms(heads=[6, 4]), None), made)
    assert all(torch.equal(back[name], tensors[name]) for name in tensors)


def test_prefix_and_old_endings_are_understood(written):
    path = written("""
        prefix: "model."
        endings: {.gamma: .weight, .beta: .bias}
        rename:
          n.{p}: model.norm.{p:weight|bias}
          table: model.emb
          out: head
        """)
    for names in (
        ["model.norm.weight", "model.norm.bias", "model.emb", "head"],
        ["norm.gamma", "norm.beta", "emb", "head"],
    ):
        theirs = {name: TensorMeta((2,), torch.float32) for name in names}
        made = plan(read_map(path), theirs, _forms(n__weight=[2], n__bias=[2], table=[2], out=[2]))
        assert sorted(name for job in made.jobs for name in job.sources) == sorted(names)
    back = plan(
        read_map(path).reversed(), _forms(n__weight=[2], n__bias=[2], table=[2], out=[2]), None
    )
    assert set(back.targets) == {"model.norm.weight", "model.norm.bias", "model.emb", "head"}


def test_an_old_ending_beside_the_new_one_is_not_lost_in_silence(written):
    path = written("""
        endings: {.gamma: .weight, .g: .weight}
        rename: {n: norm.weight}
        """)
    for other in ("norm.weight", "norm.g"):
        theirs = {name: TensorMeta((2,), torch.float32) for name in ("norm.gamma", other)}
        faults = _faults(lambda: plan(read_map(path), theirs, _forms(n=[2])), path)  # noqa: B023
        assert len(faults) == 1
        assert faults[0].startswith("1:1: no rule takes 'norm.g")


def test_what_torch_itself_refuses_has_its_line_too(written):
    path = written("""
        convert:
          - {theirs: [g, v], do: [weight-norm], ours: w}
        """)
    whole = {"g": TensorMeta((2,), torch.int64), "v": TensorMeta((2, 2), torch.int64)}
    (fault,) = _faults(lambda: plan(read_map(path), whole, _forms(w=[2, 2])), path)
    assert fault.startswith("4:5: convert[0]: 'w': ")


def test_constants_are_filled_and_not_exported(written):
    path = written("""
        rename: {w: w}
        fill: {b: zeros, "s.{n}": 0.5}
        """)
    made = _run(
        _planned(path, {"w": [2]}, {"w": [2], "b": [3], "s__0": [1], "s__1": [2]}),
        {"w": torch.ones(2)},
    )
    assert made["b"].tolist() == [0, 0, 0]
    assert made["s.1"].tolist() == [0.5, 0.5]
    back = plan(read_map(path).reversed(), _forms(w=[2], b=[3], s__0=[1]), None)
    assert list(back.targets) == ["w"]
    assert back.constant == {"b": 0.0, "s.0": 0.5}


def test_dropped_tensors_are_omitted_or_filled_on_export(written):
    path = written("""
        values: {width: 3}
        rename: {w: w}
        drop:
          - {name: mask, export: omit}
          - {name: "extra.{n:0..2}", export: ones, shape: [2, $width]}
        """)
    theirs = {"w": [2], "mask": [9], "extra__0": [2, 3], "extra__1": [2, 3]}
    assert _planned(path, theirs, {"w": [2]}).dropped == ["mask", "extra.0", "extra.1"]
    back = plan(read_map(path).reversed(), _forms(w=[2]), None)
    made = _run(back, {"w": torch.zeros(2)})
    assert set(made) == {"w", "extra.0", "extra.1"}
    assert torch.equal(made["extra.1"], torch.ones(2, 3))


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_floats_get_one_type_and_whole_numbers_keep_theirs(written, dtype):
    path = written("rename: {a: a, b: b, steps: steps}\n")
    theirs = {
        "a": TensorMeta((1,), torch.float16),
        "b": TensorMeta((1,), torch.float32),
        "steps": TensorMeta((), torch.int64),
    }
    ours = {**_forms(a=[1], b=[1]), "steps": TensorMeta((), torch.int64)}
    made = plan(read_map(path), theirs, ours, dtype=dtype).targets
    assert {made["a"].dtype, made["b"].dtype} == {dtype or torch.float32}
    assert made["steps"].dtype == torch.int64


def test_the_example_in_the_documentation_does_what_it_says(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    (tmp_path / "map.yaml").write_text(re.search(r"## Maps.*?```yaml\n(.*?)```", text, re.S)[1])
    spec = {"model": {"decoder": {"attention": {"heads": 1}}}}
    tensor_map = read_map(tmp_path / "map.yaml", spec=spec)
    theirs = {"h.0.ln.scale": [2], "h.0.ln.shift": [2], "h.0.attn.fused.weight": [2, 6]}
    theirs |= {"h.0.attn.mask": [9]}
    block = "decoder.blocks.0"
    ours = {f"{block}.norm.weight": [2], f"{block}.norm.bias": [2], "decoder.output.bias": [5]}
    ours |= {f"{block}.attention.{part}.weight": [2, 2] for part in ("query", "key", "value")}
    sides = [
        {name: TensorMeta(tuple(shape), torch.float32) for name, shape in side.items()}
        for side in (theirs, ours)
    ]
    assert plan(tensor_map, *sides).dropped == ["h.0.attn.mask"]
    assert set(plan(tensor_map.reversed(), sides[1], None).targets) == theirs.keys() - {
        "h.0.attn.mask"
    }


def test_a_cast_decides_where_nobody_asks_for_a_type(written):
    path = written("""
        convert:
          - {theirs: wide, do: [{cast: float16}], ours: a}
          - {theirs: half, ours: b}
        fill: {c: zeros}
        drop: [{name: huge, export: omit}]
        """)
    theirs = {"wide": TensorMeta((1,), torch.float64), "half": TensorMeta((1,), torch.float16)}
    theirs["huge"] = TensorMeta((1,), torch.float64)
    made = plan(read_map(path), theirs, _forms(a=[1], b=[1], c=[1])).targets
    assert {meta.dtype for meta in made.values()} == {torch.float16}


def test_a_number_that_does_not_fit_is_refused(written):
    path = written("fill: {w: 1e39}")
    faults = _faults(lambda: plan(read_map(path), {}, _forms(w=[2])), path)
    assert faults == ["2:8: fill.w: 1e+39 is too large for torch.float32"]


def test_eight_bits_are_no_plain_numbers_unless_cast(written):
    eight = {"v": TensorMeta((2,), torch.float8_e4m3fn), "u": TensorMeta((2,), torch.float32)}
    path = written("rename: {w: v, u: u}")
    faults = _faults(lambda: plan(read_map(path), eight, _forms(w=[2], u=[2])), path)
    assert faults == ["2:10: rename.w: 'w' is torch.float8_e4m3fn, should be torch.float32"]
    path = written("convert: [{theirs: v, ours: w, do: [{cast: float32}]}, {theirs: u, ours: u}]")
    made = plan(read_map(path), eight, _forms(w=[2], u=[2])).targets
    assert {meta.dtype for meta in made.values()} == {torch.float32}


def test_a_rule_that_finds_nothing_is_listed_as_idle(written):
    path = written("""
        rename:
          w: w
          x: y
        """)
    assert _planned(path, {"w": [1]}, {"w": [1]}).unused == [f"{path}:5:3"]


def test_a_rule_that_fails_in_every_layer_is_told_by_a_few(written):
    path = written("""
        rename:
          w.{n}: v.{n}
        """)
    theirs = {f"v.{n}": [2] for n in range(9)}
    with pytest.raises(SpecError) as caught:
        _planned(path, theirs, {f"w.{n}": [3] for n in range(9)})
    told = [problem.message for problem in caught.value.problems]
    assert told == [
        *(f"'w.{n}' becomes [2], should be [3]" for n in range(4)),
        "and 5 more by the same rule",
    ]


def test_everything_that_does_not_fit_comes_at_once_with_its_line(written):
    path = written("""
        rename:
          a: a
          b.{n}: b.{n}
          c: c
          same: a
          lonely: gone
          steps: c
        convert:
          - theirs: d
            do: [{split: {sections: [1, 1]}}]
            ours: [d.0, d.1]
          - {theirs: a, ours: c}
          - {theirs: [a, c], ours: e}
        fill: {a: zeros}
        """)
    theirs = {"a": [2], "b__0": [2], "b__7": [2], "c": [4], "d": [3], "stray": [5, 5]}
    ours = {"a": [2], "b__0": [3], "c": [4], "same": [2], "lonely": [1], "d__0": [1], "d__1": [1]}
    ours |= {"never": [6], "e": [2]}
    metas = _forms(**ours) | {"steps": TensorMeta((4,), torch.int64)}
    faults = _faults(lambda: plan(read_map(path), _forms(**theirs), metas), path)
    assert faults == [
        "5:3: rename.b.{n}: 'b.0' becomes [2], should be [3]",
        "5:3: rename.b.{n}: 'b.7' is in the file, but the model has no 'b.7'",
        "8:3: rename.lonely: 'lonely' needs 'gone', which is not in the file",
        "9:3: rename.steps: 'steps' is torch.float32, should be torch.int64",
        "11:5: convert[0]: 'd.0': split: sections [1, 1] do not make 2 parts of [3]",
        "14:5: convert[1]: 'c' becomes [2], should be [4]",
        "14:5: convert[1]: 'c' is filled a second time; the first is in line 6",
        "15:5: convert[2]: 'e': the rule ends with 2 tensors, but names 1",
        "16:8: fill.a: 'a' is filled a second time; the first is in line 4",
        "1:1: no rule takes 'stray' [5, 5], and it is not dropped",
        "1:1: nothing fills 'never' [6] of the model",
    ]


def test_a_model_that_has_only_half_of_what_a_rule_makes_is_a_fault(written):
    path = written("convert: [{theirs: x, do: [split], ours: [a, b]}]\n")
    faults = _faults(lambda: _planned(path, {"x": [2]}, {"a": [1]}), path)
    assert faults == ["2:11: convert[0]: the model has no 'b'"]


def test_what_cannot_be_exported_says_why(written):
    path = written("""
        convert:
          - {theirs: [a, b], do: [add], ours: sum}
          - {theirs: c, do: [{slice: {start: 1}}], ours: c}
        drop: [extra]
        """)
    tensor_map = read_map(path)
    assert _planned(path, {"a": [2], "b": [2], "c": [3]}, {"sum": [2], "c": [2]}).jobs
    back = tensor_map.reversed()
    faults = _faults(lambda: plan(back, _forms(sum=[2], c=[2]), None), path)
    assert (
        faults
        == """\
6:8: drop[0]: 'extra' is dropped, and nothing says what an export should put there: \
'export: omit', or a number with its 'shape'
4:5: convert[0]: add cannot be undone; 'export: zeros' gives the sum to the first and \
zeros to the others
5:5: convert[1]: slice cannot bring back what it left out; 'export: zeros' fills it
""".splitlines()
    )


def test_a_parameter_that_the_map_does_not_know_cannot_be_exported(written):
    path = written("rename: {a: a}\n")
    back = read_map(path).reversed()
    faults = _faults(lambda: plan(back, _forms(a=[1], new=[2]), None), path)
    assert faults == ["1:1: no rule takes 'new' [2], and it is not dropped"]


def test_a_faulty_section_does_not_hide_the_faults_of_others(written):
    path = written("""
        renam: {}
        rename:
          a.{n: b
        convert:
          - {theirs: a}
        fill: {g: nothing}
        """)
    assert _faults(lambda: read_map(path), path) == [
        f"3:1: renam: unknown key 'renam'; did you mean 'rename'? {SECTIONS}",
        "7:5: convert[0]: key 'ours' is missing",
        "8:11: fill.g: is 'nothing', but should be 'zeros' or 'ones'",
        "8:11: fill.g: is 'nothing', but should be a valid number",
        "5:3: rename.a.{n: 'a.{n' has a brace without its other half",
    ]


EVERYTHING_WRONG = f"""\
3:17: values.heads: the spec has no whole number at model.none
3:33: values.kv: the spec has no whole number at model.a nor model.b
5:3: rename.a.{{n: 'a.{{n' has a brace without its other half
6:3: rename.c.{{n}}: '{{n}}' stands on one side alone; list its numbers, as {{n:0..8}}
7:3: rename.e: 'nope' has no value here (available: none)
9:31: convert[0].do[0]: no operation named 'transpos'; did you mean 'transpose'? {OPERATIONS}
9:51: convert[0].do[1].rotary.head: unknown key 'head'; did you mean 'heads'? \
(available: heads, theirs, ours, dim)
9:50: convert[0].do[1].rotary: key 'theirs' is missing
9:50: convert[0].do[1].rotary: key 'ours' is missing
9:62: convert[0].do[2]: should be an operation, as 'transpose' or 'rotary: {{heads: 8, …}}'
9:77: convert[0].do[3].cast.to: is 'int8', but should be \
'float64', 'float32', 'float16' or 'bfloat16'
10:14: convert[1].theirs: names no tensor
11:41: convert[2].do[0].permute: permute needs every dimension once, not [1, 1]
11:60: convert[2].do[1].squeeze.dim: is 'x', but should be a valid integer
11:72: convert[2].do[2].split: should be a mapping, but is 3
12:16: convert[3].theirs[0].nam: unknown key 'nam'; did you mean 'name'? (available: name, do)
12:56: convert[3].do[0].slice.start: 'heads' has no value here (available: none)
14:5: drop[0]: 'export: zeros' needs the 'shape', and a name whose numbers are listed, as {{n:0..8}}
""".splitlines()


def test_faults_inside_sound_sections_are_found_in_one_reading(written):
    path = written("""
        values: {heads: model.none, kv: [model.a, model.b]}
        rename:
          a.{n: b
          c.{n}: d
          e: "f.$nope"
        convert:
          - {theirs: a, ours: b, do: [transpos, {rotary: {head: 2}}, 3, {cast: {to: int8}}]}
          - {theirs: [], ours: b}
          - {theirs: a, ours: b, do: [{permute: [1, 1]}, {squeeze: x}, {split: 3}]}
          - {theirs: [{nam: a}], ours: b, do: [{slice: {start: $heads}}]}
        drop:
          - {name: h, export: zeros}
        """)
    assert _faults(lambda: read_map(path), path) == EVERYTHING_WRONG


def test_a_file_that_is_no_map_is_refused(tmp_path):
    (tmp_path / "list.yaml").write_text("- a\n")
    (tmp_path / "tag.yaml").write_text("zoo: !!python/name:os.system\n")
    for name, message in (
        ("list.yaml", "should be a mapping, but is a list"),
        ("tag.yaml", "is not allowed; a spec contains plain data only"),
        ("none.yaml", "cannot be read: no such file or directory"),
    ):
        with pytest.raises(SpecError, match=message):
            read_map(tmp_path / name)
