import math

import numpy as np
import pytest
import torch
from attention_kit import CASES, PATHS, build, lengths_mask, randn
from torch import Tensor, nn

from zoo import SpecError, ZooError, recording
from zoo.plugin import Attention, Mask
from zoo_positions.t5 import T5

PROJECTIONS = ("query", "key", "value", "out")


def by_hand(attention: Attention, query: Tensor, memory: Tensor, mask: Tensor) -> np.ndarray:
    """Compute the context [B, T, D] with loops, from the state dict."""
    w = {key: value.numpy() for key, value in attention.state_dict().items()}
    H, width = attention.heads, attention.output_dim
    q, m = query.numpy(), memory.numpy()
    out = np.zeros((len(q), q.shape[1], width))
    for b in range(len(q)):
        for t in range(q.shape[1]):
            heads = [head_by_hand(w, h, H, q[b, t], m[b], mask[b, t].tolist()) for h in range(H)]
            merged = np.concatenate(heads) if attention.merge == "concat" else sum(heads) / H
            if "out.weight" in w:
                merged = w["out.weight"] @ merged + w["out.bias"]
            out[b, t] = merged
    return out


def head_by_hand(
    w: dict[str, np.ndarray], h: int, H: int, q: np.ndarray, m: np.ndarray, mask: list[bool]
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
    total, context = 0.0, np.zeros(len(values[0]))
    for key, value, valid in zip(keys, values, mask, strict=True):
        if valid:
            energy = math.exp(
                own["v"] @ np.tanh(own["W.weight"] @ q + own["U.weight"] @ key)
                if own
                else q @ key / math.sqrt(len(q))
            )
            total += energy
            context = context + energy * value
    return context / total if total else context


def test_one_head_has_known_values():
    attention = build("dot", query_dim=2, key_dim=2).double()
    query = torch.tensor([[[math.log(2), math.log(3)]]], dtype=torch.float64)
    memory = torch.tensor([[[1.0, 0], [0, 1], [9, 9]]], dtype=torch.float64)

    context = attention(query, memory, Mask(keys=torch.tensor([[True, True, False]]))).context

    # scores ln 2 and ln 3, weights 2/5 and 3/5
    expected = torch.tensor([[[2 / 5, 3 / 5]]], dtype=torch.float64)
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("merge", ["concat", "mean"])
def test_two_projected_heads_have_known_values(merge):
    attention = build("dot", query_dim=2, key_dim=1, heads=2, merge=merge, bias=False).double()
    concat = merge == "concat"
    attention.load_state_dict(
        {
            # The first head uses the first component of the query, the second head the other.
            "query.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
            "key.weight": torch.tensor([[1.0], [-1.0]]),
            "value.weight": torch.tensor([[10.0], [100.0]]),
            "out.weight": torch.tensor([[1.0, 0.0], [0.0, 2.0]] if concat else [[1.0], [2.0]]),
        }
    )
    query = torch.tensor([[[math.log(2), math.log(3)]]], dtype=torch.float64)
    memory = torch.tensor([[[0.0], [1.0]]], dtype=torch.float64)

    context = attention(query, memory).context

    # Scores of the second key: ln 2 in the first head, -ln 3 in the second; of the first key: 0.
    first, second = 10 * (2 / 3), 100 * (1 / 4)
    mean = (first + second) / 2
    expected = [first, 2 * second] if concat else [mean, 2 * mean]
    torch.testing.assert_close(
        context, torch.tensor([[expected]], dtype=torch.float64), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("key_dim", [6, 5])
@pytest.mark.parametrize("heads", [1, 2, 3])
@pytest.mark.parametrize("path", PATHS)
def test_scaled_dot_heads_match_torch_multihead_attention(heads, key_dim, bias, path):
    attention = build(key_dim=key_dim, heads=heads, project="qkv", bias=bias).double()
    reference = nn.MultiheadAttention(
        6, heads, bias=bias, kdim=key_dim, vdim=key_dim, batch_first=True, dtype=torch.float64
    )
    own = [attention.query, attention.key, attention.value]
    with torch.no_grad():
        if key_dim == 6:
            reference.in_proj_weight.copy_(torch.cat([part.weight for part in own]))
        else:
            reference.q_proj_weight.copy_(attention.query.weight)
            reference.k_proj_weight.copy_(attention.key.weight)
            reference.v_proj_weight.copy_(attention.value.weight)
        reference.out_proj.weight.copy_(attention.out.weight)
        if bias:
            reference.in_proj_bias.copy_(torch.cat([part.bias for part in own]))
            reference.out_proj.bias.copy_(attention.out.bias)
    query = randn(3, 4, 6, dtype=torch.float64).requires_grad_()
    memory = randn(3, 5, key_dim, seed=2, dtype=torch.float64).requires_grad_()
    keys = lengths_mask(5, 1, 3, S=5)

    context = path(attention, query, memory, Mask(keys=keys))
    expected, _ = reference(query, memory, memory, key_padding_mask=~keys, need_weights=False)

    torch.testing.assert_close(context, expected, rtol=0, atol=1e-10)
    for ours, theirs in zip(
        torch.autograd.grad(context.square().sum(), [query, memory]),
        torch.autograd.grad(expected.square().sum(), [query, memory]),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("path", PATHS)
def test_a_bias_of_keys_does_not_change_the_context(path):
    biased = build(heads=2, project="qkv").double()
    attention = build(heads=2, project="qkv", bias="qvo").double()
    assert [
        name for name, _ in biased.named_parameters() if name not in attention.state_dict()
    ] == ["key.bias"]
    with torch.no_grad():
        for parameter in biased.parameters():
            parameter.copy_(torch.randn_like(parameter))
    attention.load_state_dict(
        {name: tensor for name, tensor in biased.state_dict().items() if name != "key.bias"}
    )
    states = randn(2, 5, 6, dtype=torch.float64)
    expected = biased(states, states).context
    torch.testing.assert_close(path(attention, states, states, Mask()), expected)


def test_recorded_weights_match_torch_multihead_attention():
    attention = build(heads=2).double()
    reference = nn.MultiheadAttention(6, 2, batch_first=True, dtype=torch.float64)
    own = [attention.query, attention.key, attention.value]
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([part.weight for part in own]))
        reference.in_proj_bias.copy_(torch.cat([part.bias for part in own]))
    states = randn(2, 5, 6, dtype=torch.float64)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)

    with recording(attention) as log:
        attention(states, states, Mask(causal=True))
    _, expected = reference(states, states, states, attn_mask=future, average_attn_weights=False)

    torch.testing.assert_close(log[""][0], expected.detach(), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("scorer", "form"), [case for case in CASES if case.values[0] in ("scaled-dot", "additive")]
)
def test_every_form_matches_loops_over_items_heads_and_pairs(scorer, form):
    key_dim = 6 if form["project"] == "none" and scorer == "scaled-dot" else 5
    attention = build(scorer, key_dim=key_dim, **form).double()
    query, memory = (
        randn(2, 3, 6, dtype=torch.float64),
        randn(2, 4, key_dim, seed=2, dtype=torch.float64),
    )
    keys = lengths_mask(4, 2, S=4)

    context = attention(query, memory, Mask(keys=keys)).context.detach()

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
def test_output_has_width_output_dim(form, width):
    attention = build("additive", key_dim=5, **form)

    context = attention(randn(2, 3, 6), randn(2, 4, 5)).context

    assert attention.output_dim == width
    assert context.shape == (2, 3, width)


@pytest.mark.parametrize(("scorer", "form"), CASES)
def test_a_padded_batch_matches_its_items(scorer, form):
    attention = build(scorer, **form)
    query, memory = randn(2, 3, 6), randn(2, 4, 6, seed=2)

    together = attention(query, memory, Mask(keys=lengths_mask(4, 2, S=4))).context

    for item, length in enumerate((4, 2)):
        alone = attention(query[item : item + 1], memory[item : item + 1, :length]).context
        torch.testing.assert_close(together[item : item + 1], alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("scorer", "form"), CASES)
def test_prepared_memory_gives_the_same_context(scorer, form):
    attention = build(scorer, **form)
    query, memory = randn(2, 3, 6), randn(2, 4, 6, seed=2)
    prepared = attention.prepare(memory)

    single = [attention(query[:, t : t + 1], prepared).context for t in range(3)]

    assert {key: tuple(value.shape[:3]) for key, value in prepared.items()} == {
        "keys": (2, attention.heads, 4),
        "values": (2, attention.heads, 4),
    }
    torch.testing.assert_close(
        torch.cat(single, dim=1), attention(query, memory).context, rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("project", ["auto", "qkv", "kv"])
def test_heads_must_divide_query_dim(project):
    with pytest.raises(ZooError, match=r"query_dim \(6\).*heads \(4\).*head_dim$"):
        build(heads=4, project=project)


@pytest.mark.parametrize("form", [{}, {"project": "none"}])
def test_head_dim_requires_projections(form):
    with pytest.raises(ZooError, match=r"^head_dim .*project: qkv$"):
        build(head_dim=3, **form)


@pytest.mark.parametrize("scorer", ["dot", "scaled-dot"])
def test_identical_heads_raise(scorer):
    with pytest.raises(ZooError, match=rf"^3 heads .*scorer '{scorer}'.*project: qkv$"):
        build(scorer, heads=3, project="none")


def test_dot_with_unequal_widths_requires_projections():
    with pytest.raises(SpecError, match=r"dot.*query_dim is 6, key_dim is 5$"):
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
def test_state_dict_keys(scorer, form, names):
    assert list(build(scorer, **form).state_dict()) == names


def test_repr_shows_heads_and_widths():
    attention = build(key_dim=5, heads=2, kv_heads=1)
    assert attention.extra_repr() == (
        "query_dim=6, key_dim=5, heads=2, kv_heads=1, head_dim=3, merge='concat', project='qkv'"
    )


def test_a_step_applies_the_position():
    attention = build(heads=2)
    position = T5(heads=2, causal=True, buckets=4, max_distance=8)
    states = randn(2, 4, 6)
    parallel = attention(states, states, Mask(causal=True), position=position).context

    prepared = attention.prepare(states, position=position)
    step, state, _ = attention(
        states[:, 2:3],
        prepared,
        Mask(causal=True, offset=2),
        state=attention.init_state(prepared),
        position=position,
        offset=2,
    )

    assert state == {}
    torch.testing.assert_close(step, parallel[:, 2:3], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("bias", "names"),
    [(True, PROJECTIONS), (False, ()), ("qkv", PROJECTIONS[:3]), ("out", PROJECTIONS[3:])],
)
def test_projections_with_a_bias(bias, names):
    attention = build(heads=2, bias=bias)
    biases = {name for name, _ in attention.named_parameters() if name.endswith("bias")}
    assert biases == {f"{name}.bias" for name in names}
