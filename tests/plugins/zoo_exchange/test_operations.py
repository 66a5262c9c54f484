"""Each operation: known values, its inverse, and its errors."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

from zoo.errors import ZooError
from zoo_exchange.mapping.combine_ops import Add, Join, Split, WeightNorm
from zoo_exchange.mapping.pattern import Pattern
from zoo_exchange.mapping.reorder_ops import Gates, Rotary
from zoo_exchange.mapping.rules import Endpoint, Rule
from zoo_exchange.mapping.shape_ops import (
    Cast,
    Pad,
    Permute,
    Reshape,
    Slice,
    Squeeze,
    Transpose,
    Unsqueeze,
)

ROWS = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
CUBE = torch.arange(24.0).reshape(2, 3, 4)

UNARY = {
    "transpose": (Transpose(), ROWS, [[1, 3, 5, 7], [2, 4, 6, 8]]),
    "transpose-last": (Transpose(dims=(-1, -2)), CUBE[:1, :2, :2], [[[0, 4], [1, 5]]]),
    "permute": (Permute(dims=[2, 0, 1]), CUBE[:, :1, :2], [[[0], [12]], [[1], [13]]]),
    "reshape": (Reshape(theirs=[4, 2], ours=[2, -1]), ROWS, [[1, 2, 3, 4], [5, 6, 7, 8]]),
    "squeeze": (Squeeze(dim=-1), ROWS[:2, :1], [1, 3]),
    "unsqueeze": (Unsqueeze(dim=0), ROWS[:1], [[[1, 2]]]),
    "pad": (Pad(before=1, after=2, dim=1), ROWS[:2, :1], [[0, 1, 0, 0], [0, 3, 0, 0]]),
    "gates": (Gates(theirs="ifgo", ours="ifog"), ROWS, [[1, 2], [3, 4], [7, 8], [5, 6]]),
    "gates-words": (
        Gates(theirs=["r", "z", "n"], ours=["z", "r", "n"], dim=1),
        torch.arange(6.0)[None],
        [[2, 3, 0, 1, 4, 5]],
    ),
    "rotary": (
        Rotary(heads=2, theirs="interleaved", ours="halves"),
        torch.arange(12.0),
        [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11],
    ),
    "rotary-inverse": (
        Rotary(heads=1, theirs="halves", ours="interleaved", dim=-1),
        torch.arange(6.0)[None],
        [[0, 3, 1, 4, 2, 5]],
    ),
    "rotary-same-layout": (Rotary(heads=1, theirs="halves", ours="halves"), ROWS, ROWS.tolist()),
}


@pytest.mark.parametrize("case", UNARY)
def test_an_operation_on_one_tensor_and_its_inverse(case):
    operation, tensor, expected = UNARY[case]
    outputs = operation.apply_one(tensor)
    torch.testing.assert_close(outputs, torch.tensor(expected, dtype=torch.float32), atol=0, rtol=0)
    torch.testing.assert_close(operation.inverse().apply_one(outputs), tensor, atol=0, rtol=0)


@pytest.mark.parametrize("case", UNARY)
def test_an_operation_has_the_same_shape_on_the_meta_device(case):
    operation, tensor, _ = UNARY[case]
    assert operation.apply_one(tensor.to("meta")).shape == operation.apply_one(tensor).shape


def _apply_and_invert(operation, tensors, num_outputs):
    outputs = operation.apply(tensors, num_outputs)
    return outputs, operation.inverse().apply(outputs, len(tensors))


def test_split_and_join_are_inverses():
    outputs, back = _apply_and_invert(Split(), [ROWS], 2)
    assert [part.tolist() for part in outputs] == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    assert torch.equal(back[0], ROWS)
    outputs, back = _apply_and_invert(Split(dim=0, sections=[1, 3]), [ROWS], 2)
    assert [part.tolist() for part in outputs] == [[[1, 2]], [[3, 4], [5, 6], [7, 8]]]
    assert torch.equal(back[0], ROWS)
    parts = [ROWS[:, :1], ROWS]
    outputs, back = _apply_and_invert(Join(dim=1, sections=[1, 2]), parts, 1)
    assert outputs[0][0].tolist() == [1, 1, 2]
    assert all(map(torch.equal, back, parts))


def test_slice_keeps_a_range_and_its_inverse_pads_with_zeros():
    outputs, back = _apply_and_invert(Slice(start=2, export="zeros"), [ROWS], 1)
    assert outputs[0].tolist() == [[5, 6], [7, 8]]
    assert back[0].tolist() == [[0, 0], [0, 0], [5, 6], [7, 8]]
    outputs, back = _apply_and_invert(Slice(start=1, stop=2, size=4, export="zeros"), [ROWS], 1)
    assert outputs[0].tolist() == [[3, 4]]
    assert back[0].tolist() == [[0, 0], [3, 4], [0, 0], [0, 0]]


def test_add_broadcasts_and_its_inverse_assigns_the_sum_to_the_first():
    small = torch.tensor([[10.0, 20.0]])
    outputs, back = _apply_and_invert(Add(export="zeros", shapes=[[1, -1]]), [ROWS, small], 1)
    assert outputs[0].tolist() == [[11, 22], [13, 24], [15, 26], [17, 28]]
    assert torch.equal(back[0], outputs[0])
    assert back[1].tolist() == [[0, 0]]
    _, back = _apply_and_invert(Add(export="zeros"), [ROWS, ROWS], 1)
    assert torch.equal(back[1], torch.zeros(4, 2))


def test_weight_norm_equals_torch():
    torch.manual_seed(0)
    layer = torch.nn.Conv1d(3, 5, 4)
    weight = layer.weight.detach().clone()
    wrapped = torch.nn.utils.parametrizations.weight_norm(layer)
    with torch.no_grad():
        wrapped.parametrizations.weight.original0.mul_(2.0)
    g, v = (getattr(wrapped.parametrizations.weight, f"original{i}").detach() for i in (0, 1))
    outputs, back = _apply_and_invert(WeightNorm(dim=0), [g, v], 1)
    torch.testing.assert_close(outputs[0], 2 * weight)
    torch.testing.assert_close(outputs[0], wrapped.weight.detach())
    assert back[0].shape == g.shape
    torch.testing.assert_close(WeightNorm(dim=0).apply(back, 1)[0], outputs[0])


def test_weight_norm_of_a_vector():
    outputs = WeightNorm().apply([torch.tensor([3.0, 2.0]), torch.tensor([-5.0, 7.0])], 1)
    assert outputs[0].tolist() == [-3, 2]


def test_cast_converts_and_its_inverse_uses_the_export_dtype():
    half = Cast(to="float32", export="float16")
    outputs, back = _apply_and_invert(half, [ROWS.half()], 1)
    assert outputs[0].dtype == torch.float32
    assert back[0].dtype == torch.float16
    assert Cast(to="float32").inverse().apply_one(ROWS.double()).dtype == torch.float64
    assert str(half) == "cast to float32"


ERRORS = [
    (r"dimension 2 .*\[4, 2\]", lambda: Transpose(dims=(0, 2)).apply_one(ROWS)),
    (r"permute .*\[0, 0\]", lambda: Permute(dims=[0, 0])),
    (r"permute .*3 .*\[4, 2\]", lambda: Permute(dims=[0, 1, 2]).apply_one(ROWS)),
    (r"\[4, 2\].*\[3, -1\]", lambda: Reshape(ours=[3, -1]).apply_one(ROWS)),
    (r"reshape .*\[8\].*\[4, 2\]", lambda: Reshape(ours=[8], theirs=[8]).apply_one(ROWS)),
    ("reshape .*inverse.*'theirs'", lambda: Reshape(ours=[8]).inverse()),
    (r"squeeze.*dimension 0 of \[4, 2\]", lambda: Squeeze(dim=0).apply_one(ROWS)),
    (r"unsqueeze.*dimension 3 .*\[4, 2\]", lambda: Unsqueeze(dim=3).apply_one(ROWS)),
    ("slice from 2 to 1", lambda: Slice(start=2, stop=1)),
    (r"slice from 3 to 9 .*\[4, 2\]", lambda: Slice(start=3, stop=9).apply_one(ROWS)),
    (r"slice .*size 5.*\[4, 2\]", lambda: Slice(size=5).apply_one(ROWS)),
    ("slice .*inverse.*'export: zeros'", lambda: Slice(start=1).inverse()),
    ("slice .*'stop'.*'size'", lambda: Slice(stop=1, export="zeros").inverse()),
    (r"unpad.*4 \+ 0 .*\[4, 2\]", lambda: Pad(before=4).inverse().apply_one(ROWS)),
    (r"cast .*torch\.int64", lambda: Cast(to="float32").apply_one(torch.tensor([1]))),
    (r"gates.*\(i, f\).*\(f, g\)", lambda: Gates(theirs="if", ours="fg")),
    ("gates.*4 .*3 gates", lambda: Gates(theirs="rzn", ours="zrn").apply_one(ROWS)),
    (
        "rotary.*4 .*4 heads",
        lambda: Rotary(heads=4, theirs="halves", ours="interleaved").apply_one(ROWS),
    ),
    ("split .*one tensor.*2", lambda: Split().apply([ROWS, ROWS], 2)),
    ("split.*4 .*3 .*'sections'", lambda: Split().apply([ROWS], 3)),
    (r"split.*\[1, 2\].*2 .*4.*\[4, 2\]", lambda: Split(sections=[1, 2]).apply([ROWS], 2)),
    (r"join.*\[4, 1\].*'sections'", lambda: Join().apply([ROWS, ROWS[:1]], 1)),
    (r"join.*\[4, 1\].*\[4, 4\]", lambda: Join(sections=[4, 1]).apply([ROWS, ROWS], 1)),
    (r"join.*\[4, 2\], \[4, 1\].*dimension 0", lambda: Join().apply([ROWS, ROWS[:, :1]], 1)),
    (r"add.*\[4\].*\[4, 2\]", lambda: Add().apply([ROWS, torch.ones(4)], 1)),
    ("add .*inverse.*'export: zeros'", lambda: Add().inverse()),
    (
        "add.*'shapes'.*1 .*2",
        lambda: Add(export="zeros", shapes=[[1]]).inverse().apply([ROWS], 3),
    ),
    (
        r"add.*'shapes'.*\[4, 2\]",
        lambda: Add(export="zeros", shapes=[[1, 1, 1]]).inverse().apply([ROWS], 2),
    ),
    ("weight-norm .*g and v.*1", lambda: WeightNorm().apply([ROWS], 1)),
    (
        r"weight-norm.*g \[3\].*4 .*dimension 0 of v \[4, 2\]",
        lambda: WeightNorm().apply([torch.ones(3), ROWS], 1),
    ),
]


@pytest.mark.parametrize(("message", "call"), ERRORS, ids=[message for message, _ in ERRORS])
def test_errors_name_the_operation_and_the_values(message, call):
    with pytest.raises(ZooError, match=message):
        call()


@st.composite
def pipelines(draw):
    """Operations that fit a tensor, whatever the ones before have outputs of it."""
    tensor = torch.arange(48.0).reshape(draw(st.sampled_from([(4, 12), (8, 6), (2, 4, 6), (48,)])))
    start, steps = tensor, []
    for _ in range(draw(st.integers(1, 6))):
        dim = draw(st.integers(-tensor.ndim, tensor.ndim - 1))
        size = tensor.shape[dim]
        options = [
            Unsqueeze(dim=draw(st.integers(-tensor.ndim - 1, tensor.ndim))),
            Permute(dims=draw(st.permutations(range(tensor.ndim)))),
            Transpose(dims=(dim, draw(st.integers(0, tensor.ndim - 1)))),
            Reshape(theirs=list(tensor.shape), ours=[-1]),
            Pad(before=draw(st.integers(0, 2)), after=2, dim=dim),
            Cast(to="float64", export="float32"),
        ]
        options += [Squeeze(dim=dim)] if size == 1 else []
        if tensor.numel() % 6 == 0:
            options.append(Reshape(theirs=list(tensor.shape), ours=[2, -1, 3]))
        options += [Gates(theirs="rzn", ours="nrz", dim=dim)] if size % 3 == 0 else []
        layouts = st.sampled_from(["halves", "interleaved"])
        if size % 4 == 0:
            options.append(Rotary(heads=2, theirs=draw(layouts), ours=draw(layouts), dim=dim))
        step = draw(st.sampled_from(options))
        tensor = step.apply_one(tensor)
        if tensor.numel() > 4096:
            break
        steps.append(step)
    return start, steps


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(pipelines(), st.booleans())
def test_the_inverse_of_any_pipeline_restores_the_tensor(case, shared):
    tensor, steps = case
    ours, theirs = Endpoint(Pattern("a"), () if shared else steps), Endpoint(Pattern("b"))
    rule = Rule([theirs], [ours], steps if shared else ())
    (outputs,) = rule.run([tensor], rule.sources, rule.targets)
    back = rule.inverse()
    (again,) = back.run([outputs], back.sources, back.targets)
    assert again.shape == tensor.shape
    assert torch.equal(again.float(), tensor)


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 1))
def test_the_inverse_of_join_restores_sections(sections, dim):
    parts = [torch.randn((size, 3) if dim == 0 else (3, size)) for size in sections]
    ends = [Endpoint(Pattern(f"p{i}"), [Transpose()]) for i in range(len(parts))]
    rule = Rule(ends, [Endpoint(Pattern("joined"))], [Join(dim=1 - dim, sections=sections)])
    outputs = rule.run(parts, rule.sources, rule.targets)
    back = rule.inverse()
    again = back.run(outputs, back.sources, back.targets)
    assert all(map(torch.equal, again, parts))
