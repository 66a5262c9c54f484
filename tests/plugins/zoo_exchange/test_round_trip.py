"""Law of maps: an import and its export give the same names, shapes and bits, or an error.

Operations whose arguments declare a loss (`export: zeros`), and weight normalisation, give the same
names and shapes, and a second import gives the same parameters.
"""

import pytest
import torch
from hf_model_kit import hf_model
from hypothesis import HealthCheck, given, settings, strategies as st
from map_kit import assert_problems, metas_of, run_plan, write_map
from safetensors.torch import load_file, save_file

import zoo
from zoo.errors import SpecError, ZooError
from zoo_exchange.mapping import OPERATIONS, Originals, plan_tensors, read_map

dims = st.sampled_from([0, 0, 0, 1, -1, -1, 2, -3, 4])
shapes = st.sampled_from([[4, 2], [2, 4], [4], [8], [4, 1], [1, 4, 2], [4, 2, 3], [], [3, 3]])
zeros = st.sampled_from(["zeros", "zeros", None])


def optional(**arguments):
    """Return a strategy for arguments, any of which may be missing."""
    return st.fixed_dictionaries({}, optional=arguments)


ARGUMENTS = {
    "transpose": st.tuples(dims, dims).map(list),
    "permute": st.permutations(range(2)) | st.permutations(range(3)),
    "reshape": st.fixed_dictionaries(
        {"ours": st.sampled_from([[8], [2, 4], [4, -1], [2, 2, -1], [-1, -1], [3]])},
        optional={"theirs": st.sampled_from([[4, 2], [-1, 2], [-1, 2], [4, -1], [-1, -1]])},
    ),
    "squeeze": dims,
    "unsqueeze": dims,
    "slice": optional(
        start=st.integers(0, 2),
        stop=st.integers(2, 4),
        dim=st.just(0),
        size=st.just(4),
        export=zeros,
    ),
    "pad": optional(before=st.integers(0, 2), after=st.integers(0, 2), dim=dims),
    "cast": st.sampled_from(["float64", "float32", {"to": "float64", "export": "float32"}]),
    "gates": st.permutations("ab").map(lambda order: {"theirs": "ab", "ours": order}),
    "rotary": st.fixed_dictionaries(
        {
            "heads": st.integers(1, 2),
            "theirs": st.sampled_from(["halves", "interleaved"]),
            "ours": st.sampled_from(["halves", "interleaved"]),
        },
        optional={"dim": dims},
    ),
    "split": optional(dim=dims, sections=st.sampled_from([[4], [1, 3], [1, 1, 2], [2, 2]])),
    "join": optional(dim=dims, sections=st.sampled_from([[4], [4, 4], [4, 2], [2, 2, 2]])),
    "add": st.fixed_dictionaries(
        {"export": zeros},
        optional={"shapes": st.sampled_from([[], [[1, -1]], [[-1]], [[4, 2], [4, 2]]])},
    ),
    "weight-norm": dims,
    "copy": st.just({}),
    "merge": st.just({}),
}
MANY_TO_ONE = {"join", "add", "merge", "weight-norm"}
ONE_TO_MANY = {"split", "copy"}
FIRST_SHAPES = {
    "add": st.just([4, 2]),
    "reshape": st.just([4, 2]),
    "squeeze": st.sampled_from([[1, 4], [4, 1], [4]]),
    "weight-norm": st.sampled_from([[4, 1], [4], [1, 2]]),
}
OTHER_SHAPES = {
    "add": st.sampled_from([[4, 2], [4, 2], [1, 2], [2], [4]]),
    "weight-norm": st.just([4, 2]),
}


@st.composite
def tensors(draw, shape):
    """A tensor of any values and floating-point dtype."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    tensor = torch.randn(shape, generator=generator)
    if tensor.numel() and draw(st.booleans()):
        tensor.view(-1)[0] = draw(st.sampled_from([0.0, -0.0, float("nan"), float("inf")]))
    return tensor.to(draw(st.sampled_from([torch.float32, torch.float32, torch.bfloat16])))


@st.composite
def maps(draw, operation):
    """A rule with the operation, with another before or after it, and the tensors of a file."""
    count = 2 if operation == "weight-norm" else draw(st.integers(1, 3))
    names = [f"m.{index}.weight" for index in range(count)]
    theirs = names if operation in MANY_TO_ONE else names[:1]
    ours = [f"o{index}" for index in range(count if operation in ONE_TO_MANY else 1)]
    steps = [{operation: draw(ARGUMENTS[operation])}]
    single = sorted(OPERATIONS.keys() - MANY_TO_ONE - ONE_TO_MANY)
    extra = draw(st.none() | st.none() | st.sampled_from(single))
    own = [{extra: draw(ARGUMENTS[extra])}] if extra else []
    shape = draw(FIRST_SHAPES.get(operation, shapes))
    other_shapes = [draw(OTHER_SHAPES.get(operation, st.just(shape) | shapes)) for _ in theirs[1:]]
    first = draw(tensors(shape))
    is_copy = operation == "merge" and draw(st.booleans())
    others = [first.clone() if is_copy else draw(tensors(other)) for other in other_shapes]
    rule = {
        "theirs": [{"name": theirs[0], "do": own}, *theirs[1:]],
        "ours": [{"name": name, "do": []} for name in ours],
        "do": steps,
    }
    content = {"zoo": 1, "prefix": "m.", "endings": {".gamma": ".weight"}, "convert": [rule]}
    has_prefix = draw(st.booleans())
    file_names = [
        (name if has_prefix else name.removeprefix("m.")).replace(
            ".weight", draw(st.sampled_from([".weight", ".gamma"]))
        )
        for name in theirs
    ]
    return content, dict(zip(file_names, (first, *others), strict=True))


def import_tensors(tensor_map, theirs):
    targets = plan_tensors(tensor_map, metas_of(theirs), None).targets
    plan = plan_tensors(tensor_map, metas_of(theirs), targets)
    plan.check_values(theirs.__getitem__)
    originals = Originals.of(tensor_map, plan, metas_of(theirs), keep_dtypes=True)
    return run_plan(plan, theirs), Originals.from_json(originals.as_json())


def export_tensors(tensor_map, ours, originals):
    plan = plan_tensors(tensor_map.inverse(), metas_of(ours), None)
    plan = originals.restore(plan, keep_dtypes=True)
    plan.check_values(ours.__getitem__)
    return run_plan(plan, ours)


def bits(tensors):
    """Return dtypes, shapes and bytes; those of NaN are torch's, whose casts write several."""
    return {
        name: (tensor.dtype, tuple(tensor.shape), _bytes(tensor))
        for name, tensor in tensors.items()
    }


def _bytes(tensor):
    if tensor.is_floating_point():
        tensor = tensor.masked_fill(tensor.isnan(), float("nan"))
    return tensor.reshape(-1).view(torch.uint8).tolist()


def declares_loss(content):
    text = str(content)
    return "zeros" in text or "weight-norm" in text or "'cast': {" in text


def assert_round_trip(content, theirs):
    tensor_map = read_map(content)
    ours, originals = import_tensors(tensor_map, theirs)
    back = export_tensors(tensor_map, ours, originals)
    if not declares_loss(content):
        assert bits(back) == bits(theirs)
        return
    assert {n: t.shape for n, t in back.items()} == {n: t.shape for n, t in theirs.items()}
    if all(tensor.isfinite().all() for tensor in ours.values()):
        again, _ = import_tensors(tensor_map, back)
        assert again.keys() == ours.keys()
        for name, tensor in ours.items():
            torch.testing.assert_close(again[name].to(tensor.dtype), tensor, atol=1e-2, rtol=1e-2)


def test_all_operations_have_arguments():
    assert ARGUMENTS.keys() == OPERATIONS.keys()


@pytest.mark.parametrize("operation", OPERATIONS)
@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_an_operation_is_inverted_or_rejected_with_its_line(operation, data):
    content, theirs = data.draw(maps(operation))
    problems = []
    try:
        assert_round_trip(content, theirs)
    except SpecError as error:
        problems = error.problems
    assert all(problem.path.startswith("convert[0]") for problem in problems)


W = torch.arange(8.0).view(4, 2)
EXAMPLES = {
    "transpose": (["transpose"], [W], 1),
    "permute": ([{"permute": [2, 0, 1]}], [torch.randn(2, 3, 4)], 1),
    "reshape": ([{"reshape": {"theirs": [4, 2], "ours": [2, -1]}}], [W], 1),
    "squeeze": ([{"squeeze": -1}], [W[..., None]], 1),
    "unsqueeze": ([{"unsqueeze": -2}], [W], 1),
    "slice": ([{"slice": {"stop": 3, "size": 4, "export": "zeros"}}], [W], 1),
    "pad": ([{"pad": {"before": 1, "after": 2, "dim": -1}}], [W], 1),
    "cast": ([{"cast": "float64"}], [W], 1),
    "gates": ([{"gates": {"theirs": "ab", "ours": "ba"}}], [W], 1),
    "rotary": ([{"rotary": {"heads": 1, "theirs": "interleaved", "ours": "halves"}}], [W], 1),
    "split": ([{"split": {"sections": [1, 3]}}], [W], 2),
    "join": ([{"join": {"sections": [4, 1]}}], [W, W[:1]], 1),
    "add": ([{"add": {"export": "zeros", "shapes": [[1, -1]]}}], [W, W[:1]], 1),
    "weight-norm": ([{"weight-norm": 0}], [torch.rand(4, 1), W + 1], 1),
    "copy": (["copy"], [W], 2),
    "merge": (["merge"], [W, W.clone()], 1),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_example_of_each_operation_is_inverted(operation):
    steps, given_tensors, num_ours = EXAMPLES[operation]
    theirs = {f"t{index}": tensor for index, tensor in enumerate(given_tensors)}
    rule = {"theirs": list(theirs), "ours": [f"o{i}" for i in range(num_ours)], "do": steps}
    assert_round_trip({"zoo": 1, "convert": [rule]}, theirs)


@pytest.mark.parametrize(
    ("rule", "theirs", "facts"),
    [
        ("{theirs: [g, v], ours: w, do: [weight-norm]}", {"g": torch.rand(4), "v": W + 1},
         ("'g' would have shape [4, 1]", "has [4] in the file")),
        ("{theirs: [g, v], ours: w, do: [{add: {export: zeros}}]}", {"g": W, "v": W[:1]},
         ("'v' would have shape [4, 2]", "has [1, 2] in the file")),
    ],
)  # fmt: skip
def test_a_shape_that_an_export_cannot_restore_is_rejected_with_its_line(
    tmp_path, rule, theirs, facts
):
    path = write_map(tmp_path, f"convert:\n  - {rule}")
    ours, originals = import_tensors(read_map(path), theirs)
    assert_problems(
        lambda: export_tensors(read_map(path), ours, originals), path, [("3:5: convert[0]", *facts)]
    )


@pytest.mark.parametrize(
    ("rule", "theirs", "change", "message"),
    [
        ("{theirs: t, ours: w, do: [{pad: {after: 1}}]}", {"t": W}, (-1, 0),
         "the padding is not zero any more"),
        ("{theirs: [g, v], ours: w, do: [weight-norm]}", {"g": torch.rand(4, 1), "v": W + 1},
         (0, slice(None)), "a norm of the weight is zero"),
    ],
)  # fmt: skip
def test_changed_weights_that_an_export_would_lose_are_rejected(
    tmp_path, rule, theirs, change, message
):
    path = write_map(tmp_path, f"convert:\n  - {rule}")
    ours, originals = import_tensors(read_map(path), theirs)
    export_tensors(read_map(path), ours, originals)
    ours["w"][change] = 3.0 if "padding" in message else 0.0
    assert_problems(
        lambda: export_tensors(read_map(path), ours, originals),
        path,
        [("3:5: convert[0]", message)],
    )


def test_names_dtypes_and_missing_tensors_are_restored(tmp_path):
    path = write_map(
        tmp_path,
        """
        prefix: m.
        endings: {.gamma: .weight}
        rename: {a: m.a.weight, b: m.b.weight, c: m.c.weight}
        drop:
          - {name: m.mask, export: zeros, shape: [2]}
          - {name: m.ids, export: zeros, shape: [2]}
        """,
    )
    theirs = {"a.gamma": W, "b.weight": W.bfloat16(), "c.gamma": -W, "ids": torch.tensor([0, 0])}
    ours, originals = import_tensors(read_map(path), theirs)
    assert {tensor.dtype for tensor in ours.values()} == {torch.float32}
    assert bits(export_tensors(read_map(path), ours, originals)) == bits(theirs)


@pytest.mark.parametrize(
    "data", [[], {"names": 3}, {"names": {"a": 1}}, {"dtypes": {"a": "load"}}, {"absent": "x"}]
)
def test_invalid_originals_raise(data):
    with pytest.raises(ZooError, match="'originals' in the provenance is not valid"):
        Originals.from_json(data)


def test_an_old_bert_file_comes_back_with_its_names_and_bits(tmp_path):
    hf_model("bert").save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.safetensors"
    old = {
        name.removeprefix("bert.")
        .replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in load_file(file).items()
    }
    norms = [name for name in old if name.endswith(("gamma", "beta"))]
    assert len(norms) == 12
    old |= {name: old[name].half() for name in norms[:3]}
    save_file(old, file, {"format": "pt"})
    model = zoo.import_model(tmp_path / "theirs", tmp_path / "m.safetensors")
    back = zoo.export_model(model, tmp_path / "back")
    assert bits(load_file(back / "model.safetensors")) == bits(old)
