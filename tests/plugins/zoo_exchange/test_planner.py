"""Planning of maps: conversions, dtypes, exports, and every problem with its line."""

import re
from pathlib import Path

import pytest
import torch
from map_kit import assert_problems, metas, metas_of, plan_shapes, run_plan, write_map

from zoo.errors import SpecError
from zoo.interfaces.tensors import TensorMeta
from zoo_exchange.mapping import plan_tensors, read_map


@pytest.fixture
def write(tmp_path):
    return lambda text: write_map(tmp_path, text)


def test_rename_with_an_index_and_words(write):
    path = write("""
        rename:
          table: emb
          blocks.{n}.{p:weight|bias}: layer.{n+1}.{p:w|b}
        """)
    theirs = {"emb": [3, 2], **{f"layer__{n}__{p}": [n] for n in (1, 2) for p in "wb"}}
    ours = {
        "table": [3, 2],
        **{f"blocks__{n}__{p}": [n + 1] for n in (0, 1) for p in ("weight", "bias")},
    }
    plan = plan_shapes(path, theirs, ours)
    assert {target: job.sources[0] for job in plan.jobs for target in job.targets} == {
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
def test_a_fused_weight_is_split_by_values_of_the_spec_and_joined_again(write, kv_heads, width):
    spec = {"model": {"heads": 2, "kv_heads": kv_heads}}
    tensor_map = read_map(write(FUSED), spec=spec)
    fused = torch.arange(3.0 * width).reshape(3, width)
    kv_dim = 2 * (kv_heads or 2)
    ours = metas(b__0__q=[4, 3], b__0__k=[kv_dim, 3], b__0__v=[kv_dim, 3])
    plan = plan_tensors(tensor_map, metas(l__0__qkv=[3, width]), ours)
    outputs = run_plan(plan, {"l.0.qkv": fused})
    assert torch.equal(outputs["b.0.k"], fused.T[4 : 4 + kv_dim])
    exported = run_plan(plan_tensors(tensor_map.inverse(), metas_of(outputs), None), outputs)
    assert torch.equal(exported["l.0.qkv"], fused)


@pytest.mark.parametrize("name", ["conv{h:|_3|_6}/kernel", "conv_{h:1|4|7}/kernel"])
def test_a_choice_on_one_side_joins_all_its_tensors(write, name):
    path = write(f"""
        convert:
          - theirs: {name}
            ours: heads
            do: [{{squeeze: 0}}, transpose, join]
        """)
    tensor_map = read_map(path)
    (endpoint,) = tensor_map.rules[0].sources
    names = endpoint.pattern.expand({})
    tensors = {name: torch.full((1, 4, 2), float(i)) for i, name in enumerate(names)}
    plan = plan_tensors(tensor_map, metas_of(tensors), metas(heads=[6, 4]))
    outputs = run_plan(plan, tensors)
    assert outputs["heads"][:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    exported = run_plan(plan_tensors(tensor_map.inverse(), metas(heads=[6, 4]), None), outputs)
    assert all(torch.equal(exported[name], tensors[name]) for name in tensors)


def test_an_expression_of_an_index_with_listed_values(write):
    path = write("""
        rename: {"heads.{h:0..3}": "conv_{3*h+1}"}
        """)
    plan = plan_shapes(
        path,
        {"conv_1": [1], "conv_4": [2], "conv_7": [3]},
        {"heads__0": [1], "heads__1": [2], "heads__2": [3]},
    )
    assert [job.sources[0] for job in plan.jobs] == ["conv_1", "conv_4", "conv_7"]


def test_prefix_and_old_endings(write):
    path = write("""
        prefix: "model."
        endings: {.gamma: .weight, .beta: .bias}
        rename:
          n.{p}: model.norm.{p:weight|bias}
          table: model.emb
          out: head
        """)
    ours = metas(n__weight=[2], n__bias=[2], table=[2], out=[2])
    for names in (
        ["model.norm.weight", "model.norm.bias", "model.emb", "head"],
        ["norm.gamma", "norm.beta", "emb", "head"],
    ):
        theirs = {name: TensorMeta((2,), torch.float32) for name in names}
        plan = plan_tensors(read_map(path), theirs, ours)
        assert sorted(name for job in plan.jobs for name in job.sources) == sorted(names)
    exported = plan_tensors(read_map(path).inverse(), ours, None)
    assert set(exported.targets) == {"model.norm.weight", "model.norm.bias", "model.emb", "head"}


@pytest.mark.parametrize("other", ["norm.weight", "norm.g"])
def test_an_old_ending_beside_the_new_one_is_reported(write, other):
    path = write("""
        endings: {.gamma: .weight, .g: .weight}
        rename: {n: norm.weight}
        """)
    theirs = {name: TensorMeta((2,), torch.float32) for name in ("norm.gamma", other)}
    assert_problems(
        lambda: plan_tensors(read_map(path), theirs, metas(n=[2])),
        path,
        [("", "'norm.g")],
    )


def test_the_example_in_the_documentation_with_and_without_its_prefix(tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "maps.md").read_text(encoding="utf-8")
    (tmp_path / "map.yaml").write_text(re.search(r"# Maps.*?```yaml\n(.*?)```", text, re.S)[1])
    spec = {"model": {"decoder": {"attention": {"heads": 1}}}}
    tensor_map = read_map(tmp_path / "map.yaml", spec=spec)
    bare = {"h.0.ln.weight": [2], "h.0.ln.shift": [2], "h.0.attn.fused.weight": [2, 6]}
    bare |= {"h.0.attn.mask": [9]}
    block = "decoder.blocks.0"
    ours = {f"{block}.norm.weight": [2], f"{block}.norm.bias": [2], "decoder.output.bias": [5]}
    ours |= {f"{block}.attention.{part}.weight": [2, 2] for part in ("query", "key", "value")}
    targets = metas(**ours)
    assert tensor_map.prefix == "transformer."
    prefixed = {f"transformer.{name}": shape for name, shape in bare.items()}
    old_endings = {name.replace("ln.weight", "ln.gamma"): shape for name, shape in bare.items()}
    for theirs in (prefixed, bare, old_endings):
        (mask,) = (name for name in theirs if name.endswith("mask"))
        assert plan_tensors(tensor_map, metas(**theirs), targets).dropped == [mask]
    exported = plan_tensors(tensor_map.inverse(), targets, None)
    assert set(exported.targets) == prefixed.keys() - {"transformer.h.0.attn.mask"}


def test_errors_of_torch_are_reported_with_the_line_of_the_rule(write):
    path = write("""
        convert:
          - {theirs: [g, v], do: [weight-norm], ours: w}
        """)
    theirs = {"g": TensorMeta((2,), torch.int64), "v": TensorMeta((2, 2), torch.int64)}
    assert_problems(
        lambda: plan_tensors(read_map(path), theirs, metas(w=[2, 2])),
        path,
        [("4:5: convert[0]", "'w'")],
    )


def test_fill_sets_constants_that_are_not_exported(write):
    path = write("""
        rename: {w: w}
        fill: {b: zeros, "s.{n}": 0.5}
        """)
    outputs = run_plan(
        plan_shapes(path, {"w": [2]}, {"w": [2], "b": [3], "s__0": [1], "s__1": [2]}),
        {"w": torch.ones(2)},
    )
    assert outputs["b"].tolist() == [0, 0, 0]
    assert outputs["s.1"].tolist() == [0.5, 0.5]
    exported = plan_tensors(read_map(path).inverse(), metas(w=[2], b=[3], s__0=[1]), None)
    assert list(exported.targets) == ["w"]
    assert exported.constant == {"b": 0.0, "s.0": 0.5}


def test_dropped_tensors_are_omitted_or_filled_on_export(write):
    path = write("""
        values: {width: 3}
        rename: {w: w}
        drop:
          - {name: mask, export: omit}
          - {name: "extra.{n:0..2}", export: ones, shape: [2, $width]}
        """)
    theirs = {"w": [2], "mask": [9], "extra__0": [2, 3], "extra__1": [2, 3]}
    assert plan_shapes(path, theirs, {"w": [2]}).dropped == ["mask", "extra.0", "extra.1"]
    exported = run_plan(
        plan_tensors(read_map(path).inverse(), metas(w=[2]), None), {"w": torch.zeros(2)}
    )
    assert set(exported) == {"w", "extra.0", "extra.1"}
    assert torch.equal(exported["extra.1"], torch.ones(2, 3))


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_floats_get_one_dtype_and_integers_keep_theirs(write, dtype):
    path = write("rename: {a: a, b: b, steps: steps}\n")
    theirs = {
        "a": TensorMeta((1,), torch.float16),
        "b": TensorMeta((1,), torch.float32),
        "steps": TensorMeta((), torch.int64),
    }
    ours = {**metas(a=[1], b=[1]), "steps": TensorMeta((), torch.int64)}
    targets = plan_tensors(read_map(path), theirs, ours, dtype=dtype).targets
    assert {targets["a"].dtype, targets["b"].dtype} == {dtype or torch.float32}
    assert targets["steps"].dtype == torch.int64


def test_a_cast_decides_the_default_dtype(write):
    path = write("""
        convert:
          - {theirs: wide, do: [{cast: float16}], ours: a}
          - {theirs: half, ours: b}
        fill: {c: zeros}
        drop: [{name: huge, export: omit}]
        """)
    theirs = {"wide": TensorMeta((1,), torch.float64), "half": TensorMeta((1,), torch.float16)}
    theirs["huge"] = TensorMeta((1,), torch.float64)
    targets = plan_tensors(read_map(path), theirs, metas(a=[1], b=[1], c=[1])).targets
    assert {meta.dtype for meta in targets.values()} == {torch.float16}


def test_a_fill_value_out_of_range_is_reported(write):
    path = write("fill: {w: 1e39}")
    assert_problems(
        lambda: plan_tensors(read_map(path), {}, metas(w=[2])),
        path,
        [("2:8: fill.w", "1e+39", "torch.float32")],
    )


def test_8_bit_floats_need_a_cast(write):
    theirs = {"v": TensorMeta((2,), torch.float8_e4m3fn), "u": TensorMeta((2,), torch.float32)}
    path = write("rename: {w: v, u: u}")
    assert_problems(
        lambda: plan_tensors(read_map(path), theirs, metas(w=[2], u=[2])),
        path,
        [("2:10: rename.w", "'w'", "torch.float8_e4m3fn", "torch.float32")],
    )
    path = write("convert: [{theirs: v, ours: w, do: [{cast: float32}]}, {theirs: u, ours: u}]")
    targets = plan_tensors(read_map(path), theirs, metas(w=[2], u=[2])).targets
    assert {meta.dtype for meta in targets.values()} == {torch.float32}


def test_a_rule_that_matches_nothing_is_listed_as_unused(write):
    path = write("""
        rename:
          w: w
          x: y
        """)
    assert plan_shapes(path, {"w": [1]}, {"w": [1]}).unused == [f"{path}:5:3"]


def test_a_rule_that_fails_in_every_layer_reports_the_first_few(write):
    path = write("""
        rename:
          w.{n}: v.{n}
        """)
    with pytest.raises(SpecError) as caught:
        plan_shapes(path, {f"v.{n}": [2] for n in range(9)}, {f"w.{n}": [3] for n in range(9)})
    *first, last = [problem.message for problem in caught.value.problems]
    assert [re.findall(r"'(w\.\d)'.*\[2\].*\[3\]", message) for message in first] == [
        [f"w.{n}"] for n in range(4)
    ]
    assert " 5 more " in last


def test_all_problems_are_reported_with_their_lines(write):
    path = write("""
        rename:
          a: a
          b.{n}: b.{n}
          c: c
          same: a
          missing: gone
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
    ours = {"a": [2], "b__0": [3], "c": [4], "same": [2], "missing": [1], "d__0": [1], "d__1": [1]}
    ours |= {"never": [6], "e": [2]}
    targets = metas(**ours) | {"steps": TensorMeta((4,), torch.int64)}
    assert_problems(
        lambda: plan_tensors(read_map(path), metas(**theirs), targets),
        path,
        [
            ("5:3: rename.b.{n}", "'b.0'", "[2]", "[3]"),
            ("5:3: rename.b.{n}", "'b.7'", "model has no parameter 'b.7'"),
            ("8:3: rename.missing", "'missing'", "'gone'", "not in the file"),
            ("9:3: rename.steps", "'steps'", "torch.float32", "torch.int64"),
            ("11:5: convert[0]", "'d.0'", "[1, 1]", "[3]"),
            ("14:5: convert[1]", "'c'", "[2]", "[4]"),
            ("14:5: convert[1]", "'c'", "line 6"),
            ("15:5: convert[2]", "'e'", "2 tensors", "1 target", "'join'"),
            ("16:8: fill.a", "'a'", "line 4"),
            ("", "'stray' [5, 5]", "drop"),
            ("", "'never' [6]"),
        ],
    )


def test_a_rule_with_only_some_of_its_targets_in_the_model_is_reported(write):
    path = write("convert: [{theirs: x, do: [split], ours: [a, b]}]\n")
    assert_problems(
        lambda: plan_shapes(path, {"x": [2]}, {"a": [1]}), path, [("2:11: convert[0]", "'b'")]
    )


def test_rules_without_an_inverse_are_reported_on_export(write):
    path = write("""
        convert:
          - {theirs: [a, b], do: [add], ours: sum}
          - {theirs: c, do: [{slice: {start: 1}}], ours: c}
        drop: [extra]
        """)
    assert plan_shapes(path, {"a": [2], "b": [2], "c": [3]}, {"sum": [2], "c": [2]}).jobs
    exported = read_map(path).inverse()
    assert_problems(
        lambda: plan_tensors(exported, metas(sum=[2], c=[2]), None),
        path,
        [
            ("6:8: drop[0]", "'extra'", "'export: omit'", "'shape'"),
            ("4:5: convert[0]", "add", "'export: zeros'"),
            ("5:5: convert[1]", "slice", "'export: zeros'"),
        ],
    )


def test_a_parameter_without_a_rule_is_reported_on_export(write):
    path = write("rename: {a: a}\n")
    exported = read_map(path).inverse()
    assert_problems(
        lambda: plan_tensors(exported, metas(a=[1], new=[2]), None),
        path,
        [("", "'new' [2]")],
    )
