import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from zoo import SpecError, ZooError, recording
from zoo.plugin import Alignment, AlignmentContext, Attention, Blueprint, FromParent, Mask
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_luong.concat import Concat
from zoo_luong.dot import Dot
from zoo_luong.general import General
from zoo_transformer.scaled_dot import ScaledDot

SCORERS = {
    "dot": Blueprint.of(Dot),
    "general": Blueprint.of(General),
    "concat": Blueprint.of(Concat, hidden=3),
    "additive": Blueprint.of(Additive, hidden=3),
    "scaled-dot": Blueprint.of(ScaledDot),
}
PROJECTIONS = ("query", "key", "value", "out")
FORMS = [
    {"heads": heads, "merge": merge, "project": project}
    for heads in (1, 3)
    for merge in ("concat", "mean")
    for project in ("none", "qkv", "kv")
]
CASES = [
    pytest.param(scorer, form, id="-".join([scorer, *map(str, form.values())]))
    for scorer in SCORERS
    for form in FORMS
    # Heads without projections or parameters would be one and the same.
    if not (form["project"] == "none" and form["heads"] > 1 and "dot" in scorer)
]
FUSED = [case for case in CASES if case.values[0] in ("dot", "scaled-dot")]
FUSED += [case for case in CASES if case.values[0] == "general" and case.values[1]["heads"] == 1]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors this small take longer to share out than to work through."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Uniform(Alignment):
    """Every open key alike; no softmax."""

    name = "uniform"

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        opened = torch.ones_like(scores) if mask is None else mask.expand_as(scores).to(scores)
        return opened / opened.sum(dim=-1, keepdim=True).clamp(min=1)


def build(
    scorer: str = "scaled-dot", query_dim: int = 6, key_dim: int = 6, **form: Any
) -> Attention:
    torch.manual_seed(0)
    return Attention(
        query_dim=query_dim,
        key_dim=key_dim,
        scorer=SCORERS[scorer],
        align=form.pop("align", Blueprint.of(Soft)),
        **form,
    )


def draw(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def lengths_mask(*lengths: int, S: int) -> Tensor:
    return torch.arange(S)[None] < torch.tensor(lengths)[:, None]


def by_reference(attention: Attention, query: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """While weights are recorded, the reference path runs."""
    with recording(attention):
        return attention(query, memory, mask)


def by_fusion(attention: Attention, query: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    return attention(query, memory, mask)


PATHS = [
    pytest.param(by_reference, id="reference"),
    pytest.param(by_fusion, id="fused"),
]


def by_hand(attention: Attention, query: Tensor, memory: Tensor, opened: Tensor) -> np.ndarray:
    """One item at a time, one pair at a time: [B, T, D] from the weights' names alone."""
    w = {key: value.numpy() for key, value in attention.state_dict().items()}
    H, width = attention.heads, attention.output_dim
    q, m = query.numpy(), memory.numpy()
    out = np.zeros((len(q), q.shape[1], width))
    for b in range(len(q)):
        for t in range(q.shape[1]):
            heads = [head_by_hand(w, h, H, q[b, t], m[b], opened[b, t].tolist()) for h in range(H)]
            merged = np.concatenate(heads) if attention.merge == "concat" else sum(heads) / H
            if "out.weight" in w:
                merged = w["out.weight"] @ merged + w["out.bias"]
            out[b, t] = merged
    return out


def head_by_hand(
    w: dict[str, np.ndarray], h: int, H: int, q: np.ndarray, m: np.ndarray, opened: list[bool]
) -> np.ndarray:
    def project(name: str, x: np.ndarray) -> np.ndarray:
        rows = np.split(w[f"{name}.weight"], H)[h]
        return rows @ x + np.split(w[f"{name}.bias"], H)[h]

    keys = values = list(m)
    if "query.weight" in w:
        q = project("query", q)
        keys = values = [project("key", x) for x in m]
    if "value.weight" in w:
        values = [project("value", x) for x in m]
    own = {k.removeprefix(f"scorers.{h}."): v for k, v in w.items() if k.startswith("scorers.")}
    total, mixed = 0.0, np.zeros(len(values[0]))
    for key, value, open_ in zip(keys, values, opened, strict=True):
        if open_:
            energy = math.exp(
                own["v"] @ np.tanh(own["W.weight"] @ q + own["U.weight"] @ key)
                if own
                else q @ key / math.sqrt(len(q))
            )
            total += energy
            mixed = mixed + energy * value
    return mixed / total if total else mixed


def test_one_head_of_known_numbers():
    attention = build("dot", query_dim=2, key_dim=2).double()
    query = torch.tensor([[[math.log(2), math.log(3)]]], dtype=torch.float64)
    memory = torch.tensor([[[1.0, 0], [0, 1], [9, 9]]], dtype=torch.float64)

    context = attention(query, memory, Mask(keys=torch.tensor([[True, True, False]])))

    # The scores are ln 2 and ln 3, so the weights are 2/5 and 3/5.
    expected = torch.tensor([[[2 / 5, 3 / 5]]], dtype=torch.float64)
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("merge", ["concat", "mean"])
def test_two_projected_heads_of_known_numbers(merge):
    attention = build("dot", query_dim=2, key_dim=1, heads=2, merge=merge, bias=False).double()
    wide = merge == "concat"
    attention.load_state_dict(
        {
            # The first head asks with the query's first number, the second with its other.
            "query.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
            "key.weight": torch.tensor([[1.0], [-1.0]]),
            "value.weight": torch.tensor([[10.0], [100.0]]),
            "out.weight": torch.tensor([[1.0, 0.0], [0.0, 2.0]] if wide else [[1.0], [2.0]]),
        }
    )
    query = torch.tensor([[[math.log(2), math.log(3)]]], dtype=torch.float64)
    memory = torch.tensor([[[0.0], [1.0]]], dtype=torch.float64)

    context = attention(query, memory)

    # Scores of the second key: ln 2 in the first head, -ln 3 in the second; of the first, 0.
    first, second = 10 * (2 / 3), 100 * (1 / 4)
    mean = (first + second) / 2
    expected = [first, 2 * second] if wide else [mean, 2 * mean]
    torch.testing.assert_close(
        context, torch.tensor([[expected]], dtype=torch.float64), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("key_dim", [6, 5])
@pytest.mark.parametrize("heads", [1, 2, 3])
@pytest.mark.parametrize("path", PATHS)
def test_scaled_dot_heads_equal_torchs_multihead_attention(heads, key_dim, bias, path):
    attention = build(key_dim=key_dim, heads=heads, project="qkv", bias=bias).double()
    torchs = nn.MultiheadAttention(
        6, heads, bias=bias, kdim=key_dim, vdim=key_dim, batch_first=True, dtype=torch.float64
    )
    own = [attention.query, attention.key, attention.value]
    with torch.no_grad():
        if key_dim == 6:
            torchs.in_proj_weight.copy_(torch.cat([part.weight for part in own]))
        else:
            torchs.q_proj_weight.copy_(attention.query.weight)
            torchs.k_proj_weight.copy_(attention.key.weight)
            torchs.v_proj_weight.copy_(attention.value.weight)
        torchs.out_proj.weight.copy_(attention.out.weight)
        if bias:
            torchs.in_proj_bias.copy_(torch.cat([part.bias for part in own]))
            torchs.out_proj.bias.copy_(attention.out.bias)
    query = draw(3, 4, 6, dtype=torch.float64).requires_grad_()
    memory = draw(3, 5, key_dim, seed=2, dtype=torch.float64).requires_grad_()
    keys = lengths_mask(5, 1, 3, S=5)

    context = path(attention, query, memory, Mask(keys=keys))
    expected, _ = torchs(query, memory, memory, key_padding_mask=~keys, need_weights=False)

    torch.testing.assert_close(context, expected, rtol=0, atol=1e-10)
    for ours, theirs in zip(
        torch.autograd.grad(context.square().sum(), [query, memory]),
        torch.autograd.grad(expected.square().sum(), [query, memory]),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_recorded_weights_equal_those_of_torchs_multihead_attention():
    attention = build(heads=2).double()
    torchs = nn.MultiheadAttention(6, 2, batch_first=True, dtype=torch.float64)
    own = [attention.query, attention.key, attention.value]
    with torch.no_grad():
        torchs.in_proj_weight.copy_(torch.cat([part.weight for part in own]))
        torchs.in_proj_bias.copy_(torch.cat([part.bias for part in own]))
    states = draw(2, 5, 6, dtype=torch.float64)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)

    with recording(attention) as log:
        attention(states, states, Mask(causal=True))
    _, expected = torchs(states, states, states, attn_mask=future, average_attn_weights=False)

    torch.testing.assert_close(log[""][0], expected.detach(), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("scorer", "form"), [case for case in CASES if case.values[0] in ("scaled-dot", "additive")]
)
def test_every_form_equals_loops_over_items_heads_and_pairs(scorer, form):
    key_dim = 6 if form["project"] == "none" and scorer == "scaled-dot" else 5
    attention = build(scorer, key_dim=key_dim, **form).double()
    query, memory = (
        draw(2, 3, 6, dtype=torch.float64),
        draw(2, 4, key_dim, seed=2, dtype=torch.float64),
    )
    keys = lengths_mask(4, 2, S=4)

    context = attention(query, memory, Mask(keys=keys)).detach()

    expected = by_hand(attention, query, memory, keys[:, None].expand(-1, 3, -1))
    assert context.shape == (2, 3, attention.output_dim)
    np.testing.assert_allclose(context, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("form", "width"),
    [
        ({}, 5),
        ({"heads": 2, "project": "none"}, 2 * 5),
        ({"heads": 2, "project": "none", "merge": "mean"}, 5),
        ({"heads": 2}, 6),
        ({"heads": 2, "merge": "mean"}, 6),
        ({"heads": 4, "head_dim": 7}, 6),
        ({"heads": 4, "head_dim": 7, "project": "kv", "merge": "mean"}, 6),
        ({"project": "qkv"}, 6),
    ],
)
def test_its_output_is_as_wide_as_it_says(form, width):
    attention = build("additive", key_dim=5, **form)

    context = attention(draw(2, 3, 6), draw(2, 4, 5))

    assert attention.output_dim == width
    assert context.shape == (2, 3, width)


@pytest.mark.parametrize(("scorer", "form"), FUSED)
def test_the_fused_path_equals_the_reference_path(scorer, form):
    attention = build(scorer, **form)
    query, memory = draw(3, 4, 6), draw(3, 5, 6, seed=2)
    for mask in (
        Mask(),
        Mask(keys=lengths_mask(5, 1, 3, S=5)),
        Mask(causal=True, offset=1),
        Mask(keys=lengths_mask(5, 1, 3, S=5), causal=True),
        Mask(pairs=draw(3, 4, 5, seed=3) > 0),
    ):
        torch.testing.assert_close(
            by_fusion(attention, query, memory, mask),
            by_reference(attention, query, memory, mask),
            rtol=0,
            atol=1e-6,
        )


class Counting(ScaledDot):
    """Scaled dot that says how often its fused path was taken."""

    name = "counting"
    taken = 0

    def fused(self, query: Tensor, prepared: Tensor, values: Tensor, mask: Mask) -> Tensor | None:
        self.taken += 1
        return super().fused(query, prepared, values, mask)


@pytest.mark.parametrize("heads", [1, 2])
def test_the_fused_path_is_taken_unless_weights_are_recorded(heads):
    attention = Attention(
        query_dim=6,
        key_dim=6,
        scorer=Blueprint.of(Counting),
        align=Blueprint.of(Soft),
        heads=heads,
    )
    states = draw(1, 2, 6)

    attention(states, states)
    assert attention.scorers[0].taken == 1
    with recording(attention):
        attention(states, states)
    assert attention.scorers[0].taken == 1
    attention(states, states)
    assert attention.scorers[0].taken == 2


class Tempered(ScaledDot):
    """Scaled dot with a temperature to learn."""

    name = "tempered"

    def __init__(self, *, query_dim: FromParent[int], key_dim: FromParent[int]) -> None:
        super().__init__(query_dim=query_dim, key_dim=key_dim)
        self.heat = nn.Parameter(torch.rand(()))

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().score(query * self.heat, prepared)

    def fused(self, query: Tensor, prepared: Tensor, values: Tensor, mask: Mask) -> Tensor | None:
        return super().fused(query * self.heat, prepared, values, mask)


@pytest.mark.parametrize("heads", [1, 2])
def test_every_head_scores_with_weights_of_its_own_on_both_paths(heads):
    torch.manual_seed(0)
    attention = Attention(
        query_dim=6,
        key_dim=6,
        scorer=Blueprint.of(Tempered),
        align=Blueprint.of(Soft),
        heads=heads,
    )
    query, memory = draw(2, 3, 6), draw(2, 4, 6, seed=2)

    torch.testing.assert_close(
        by_fusion(attention, query, memory, Mask()),
        by_reference(attention, query, memory, Mask()),
        rtol=0,
        atol=1e-6,
    )


def test_an_alignment_that_is_no_softmax_is_not_replaced_by_one():
    attention = build(align=Blueprint.of(Uniform))
    query, memory = draw(2, 3, 6), draw(2, 4, 6, seed=2)
    keys = lengths_mask(4, 2, S=4)

    context = attention(query, memory, Mask(keys=keys))

    expected = torch.stack([memory[0].mean(dim=0), memory[1, :2].mean(dim=0)])
    torch.testing.assert_close(context, expected[:, None].expand(-1, 3, -1), rtol=0, atol=1e-6)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("scorer", "form"), CASES)
def test_a_masked_key_changes_no_bit(scorer, form, path):
    attention = build(scorer, **form)
    query, memory = draw(3, 4, 6), draw(3, 5, 6, seed=2)
    mask = Mask(keys=lengths_mask(5, 1, 3, S=5))
    before = path(attention, query, memory, mask)

    masked = torch.where(mask.keys[..., None], memory, draw(3, 5, 6, seed=3) * 100)
    opened = torch.where(mask.keys[..., None], draw(3, 5, 6, seed=3), memory)

    assert torch.equal(path(attention, query, masked, mask), before)
    assert (path(attention, query, opened, mask) != before).flatten(1).any(dim=-1).all()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_key_closed_to_some_queries_changes_the_others_alone(scorer, path):
    attention = build(scorer, heads=2)
    query, memory = draw(2, 4, 6), draw(2, 5, 6, seed=2)
    pairs = draw(2, 4, 5, seed=4) > 0
    pairs[..., 0] = True
    before = path(attention, query, memory, Mask(pairs=pairs))

    for s in range(1, 5):
        changed = memory.clone()
        changed[:, s] += 1
        after = path(attention, query, changed, Mask(pairs=pairs))
        assert torch.equal((after != before).any(dim=-1), pairs[..., s])


@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_causal_mask_closes_the_future(scorer, path, offset):
    attention = build(scorer, heads=2)
    query, memory = draw(2, 3, 6), draw(2, 5, 6, seed=2)
    mask = Mask(causal=True, offset=offset)
    before = path(attention, query, memory, mask)

    for s in range(5):
        changed = memory.clone()
        changed[:, s] += 1
        after = path(attention, query, changed, mask)
        sees = [s <= offset + t for t in range(3)]
        assert (after != before).any(dim=-1).tolist() == [sees, sees]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_queries_one_by_one_with_an_offset_equal_all_at_once(scorer, path):
    attention = build(scorer, heads=2)
    states = draw(2, 5, 6)
    whole = path(attention, states, states, Mask(causal=True))

    for t in range(5):
        one = path(attention, states[:, t : t + 1], states, Mask(causal=True, offset=t))
        torch.testing.assert_close(one, whole[:, t : t + 1], rtol=0, atol=1e-6)


def test_a_mask_is_the_conjunction_of_its_parts():
    keys = lengths_mask(5, 2, S=5)
    pairs = draw(2, 3, 5) > 0

    dense = Mask(keys=keys, causal=True, offset=1, pairs=pairs).dense(3, 5, torch.device("cpu"))

    for b in range(2):
        for t in range(3):
            for s in range(5):
                assert dense[b, t, s] == (keys[b, s] and pairs[b, t, s] and s <= 1 + t)


def test_a_mask_without_parts_is_open():
    assert Mask().dense(3, 5, torch.device("cpu")) is None


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_fully_masked_row_gives_zeros(scorer, path):
    attention = build(scorer)
    query, memory = draw(2, 3, 6), draw(2, 4, 6, seed=2).requires_grad_()
    keys = lengths_mask(4, 0, S=4)

    context = path(attention, query, memory, Mask(keys=keys))
    context.square().sum().backward()

    assert torch.count_nonzero(context[1]) == 0
    assert torch.count_nonzero(context[0]) == context[0].numel()
    assert memory.grad.isfinite().all()
    assert torch.count_nonzero(memory.grad[1]) == 0


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_fully_masked_row_of_projected_heads_gives_the_bias_of_the_last_map(scorer, path):
    attention = build(scorer, heads=2)
    query, memory = draw(2, 3, 6), draw(2, 4, 6, seed=2)
    pairs = torch.ones(2, 3, 4, dtype=torch.bool)
    pairs[1, 2] = False

    context = path(attention, query, memory, Mask(pairs=pairs))

    torch.testing.assert_close(context[1, 2], attention.out.bias, rtol=0, atol=1e-7)
    assert context.isfinite().all()


@pytest.mark.parametrize(("scorer", "form"), CASES)
def test_a_padded_batch_equals_its_items_alone(scorer, form):
    attention = build(scorer, **form)
    query, memory = draw(2, 3, 6), draw(2, 4, 6, seed=2)

    together = attention(query, memory, Mask(keys=lengths_mask(4, 2, S=4)))

    for item, length in enumerate((4, 2)):
        alone = attention(query[item : item + 1], memory[item : item + 1, :length])
        torch.testing.assert_close(together[item : item + 1], alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("scorer", "form"), CASES)
def test_a_memory_prepared_once_serves_every_query(scorer, form):
    attention = build(scorer, **form)
    query, memory = draw(2, 3, 6), draw(2, 4, 6, seed=2)
    prepared = attention.prepare(memory)

    one_by_one = [attention(query[:, t : t + 1], prepared) for t in range(3)]

    assert {key: tuple(value.shape[:3]) for key, value in prepared.items()} == {
        "keys": (2, attention.heads, 4),
        "values": (2, attention.heads, 4),
    }
    torch.testing.assert_close(
        torch.cat(one_by_one, dim=1), attention(query, memory), rtol=0, atol=1e-6
    )


def test_a_recording_holds_the_weights_of_every_call_by_name():
    model = nn.ModuleDict(
        {"first": build("additive", heads=3, project="none"), "second": build("dot")}
    )
    query, memory = draw(2, 4, 6), draw(2, 5, 6, seed=2)
    keys = lengths_mask(5, 2, S=5)

    with recording(model) as log:
        model["first"](query, memory, Mask(keys=keys))
        model["first"](query[:, :1], memory, Mask(keys=keys))
        model["second"](query, memory)

    assert {name: [tuple(w.shape) for w in calls] for name, calls in log.items()} == {
        "first": [(2, 3, 4, 5), (2, 3, 1, 5)],
        "second": [(2, 1, 4, 5)],
    }
    for weights in log["first"]:
        opened = keys[:, None, None].expand_as(weights)
        assert torch.equal(weights > 0, opened)
        torch.testing.assert_close(
            weights.sum(dim=-1), torch.ones(weights.shape[:3]), rtol=0, atol=1e-6
        )
    # The heads look each their own way.
    assert not torch.allclose(log["first"][0][:, 0], log["first"][0][:, 1])


def test_a_recording_leaves_nothing_behind():
    attention = build(heads=2)
    states = draw(1, 3, 6).requires_grad_()
    names = list(attention.state_dict())

    with recording(attention) as log:
        attention(states, states)
    attention(states, states)

    assert not attention.listeners
    assert len(log[""]) == 1
    assert not log[""][0].requires_grad
    assert list(attention.state_dict()) == names


def test_a_recording_with_gradients_lies_within_another():
    attention = build("dot")
    states = draw(1, 3, 6).requires_grad_()

    with recording(attention) as outside:
        with recording(attention, gradients=True) as within:
            attention(states, states)
        attention(states, states)

    assert [len(outside[""]), len(within[""])] == [2, 1]
    torch.testing.assert_close(within[""][0], outside[""][0], rtol=0, atol=0)
    within[""][0].square().sum().backward()
    assert states.grad.abs().sum() > 0
    assert not attention.listeners


def test_a_recording_ends_when_its_block_fails():
    attention = build()

    with pytest.raises(RuntimeError), recording(attention):
        attention(draw(1, 3, 6), draw(1, 3, 7))

    assert not attention.listeners


def test_recorded_weights_mix_the_memory_into_the_context():
    attention = build("additive")
    query, memory = draw(2, 4, 6), draw(2, 5, 6, seed=2)

    with recording(attention) as log:
        context = attention(query, memory)

    torch.testing.assert_close(log[""][0][:, 0] @ memory, context, rtol=0, atol=1e-6)


@pytest.mark.parametrize("project", ["auto", "qkv", "kv"])
def test_heads_that_do_not_divide_the_width_are_refused(project):
    message = r"^heads \(4\) must divide query_dim \(6\), or set head_dim$"
    with pytest.raises(ZooError, match=message):
        build(heads=4, project=project)


@pytest.mark.parametrize("form", [{}, {"project": "none"}])
def test_a_head_width_without_projections_is_refused(form):
    message = "^head_dim has no meaning without projections; set project: qkv$"
    with pytest.raises(ZooError, match=message):
        build(head_dim=3, **form)


@pytest.mark.parametrize("scorer", ["dot", "scaled-dot"])
def test_heads_that_would_all_be_the_same_are_refused(scorer):
    message = (
        f"^3 heads without projections would be 3 times the same head, since scorer '{scorer}' "
        "has no parameters; set project: qkv$"
    )
    with pytest.raises(ZooError, match=message):
        build(scorer, heads=3, project="none")


def test_a_dot_between_two_widths_is_refused_unless_projected():
    message = "^'dot' dot needs queries and keys of one width: query_dim is 6, key_dim is 5$"
    with pytest.raises(SpecError, match=message):
        build("dot", key_dim=5)

    assert build("dot", key_dim=5, project="qkv").output_dim == 6


@pytest.mark.parametrize(
    ("scorer", "form", "names"),
    [
        ("dot", {}, []),
        (
            "scaled-dot",
            {"heads": 2},
            [f"{part}.{kind}" for part in PROJECTIONS for kind in ("weight", "bias")],
        ),
        ("scaled-dot", {"heads": 2, "bias": False}, [f"{part}.weight" for part in PROJECTIONS]),
        (
            "scaled-dot",
            {"heads": 2, "bias": False, "project": "kv"},
            ["query.weight", "key.weight", "out.weight"],
        ),
        (
            "additive",
            {"heads": 2, "project": "none"},
            [f"scorers.{h}.{name}" for h in (0, 1) for name in ("v", "W.weight", "U.weight")],
        ),
        ("general", {}, ["scorers.0.W.weight"]),
    ],
)
def test_its_weights_are_named(scorer, form, names):
    assert list(build(scorer, **form).state_dict()) == names
