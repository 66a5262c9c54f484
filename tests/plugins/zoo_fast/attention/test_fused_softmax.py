"""The fused path of dot products against the reference path: contexts and all gradients."""

import math
from dataclasses import replace

import pytest
import torch
from attention_kit import build, lengths_mask, randn
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from zoo import accelerate, recording
from zoo.plugin import Attention, Blueprint, Mask, Position
from zoo_alignment.soft import Soft
from zoo_fast.attention import fused_softmax as softmax_module
from zoo_fast.attention.fused_attention import why_not_inner_product
from zoo_fast.attention.fused_softmax import fused_softmax
from zoo_positions.alibi import ALiBi
from zoo_positions.rotary import Rotary
from zoo_positions.t5 import T5

TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 3e-2}
FORMS = {
    "bare": {},
    "heads": {"heads": 4},
    "grouped": {"heads": 4, "kv_heads": 2},
    "one-for-all": {"heads": 4, "kv_heads": 1},
}
SIZES = [(5, 5), (1, 1), (1, 7), (3, 7), (7, 3), (17, 33)]  # T, S


def make_masks(T: int, S: int) -> dict[str, Mask]:
    ragged = lengths_mask(S, max(1, S // 2), 0, S=S)  # the third item is fully masked
    return {
        "none": Mask(),
        "unused": Mask(keys=torch.ones(3, S, dtype=torch.bool)),
        "ragged": Mask(keys=ragged),
        "causal": Mask(causal=True),
        "causal-offset": Mask(causal=True, offset=max(0, S - T)),
        "causal-tensor-offset": Mask(causal=True, offset=torch.tensor(1)),
        "causal-ragged": Mask(keys=ragged, causal=True),
        "pairs": Mask(pairs=randn(3, T, S, seed=9) > 0),
    }


def run(
    attention: Attention, states: tuple[Tensor, Tensor], mask: Mask, position: Position | None
) -> list[Tensor]:
    """Return the context and the gradients of inputs and parameters."""
    query, memory = (part.detach().requires_grad_() for part in states)
    parameters = [*attention.parameters(), *(position.parameters() if position else ())]
    context = attention(query, memory, mask, position=position).context
    weights = randn(*context.shape, seed=5).to(context.dtype)
    grads = torch.autograd.grad((context * weights).sum(), [query, memory, *parameters])
    return [context.detach(), *grads]


def compare(
    attention: Attention,
    states: tuple[Tensor, Tensor],
    mask: Mask,
    position: Position | None = None,
) -> None:
    assert why_not_inner_product(attention) is None
    fused = run(accelerate(attention), states, mask, position)
    with recording(attention):
        reference = run(attention, states, replace(mask), position)
    tolerance = TOLERANCE[states[0].dtype]
    scale = max(1.0, *(float(part.abs().max()) for part in reference))
    for ours, theirs in zip(fused, reference, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scorer", ["dot", "scaled-dot"])
def test_contexts_and_gradients_agree_for_every_mask_and_size(scorer, form, dtype):
    attention = build(scorer, query_dim=12, key_dim=12, **FORMS[form]).to(dtype)
    for T, S in SIZES:
        states = randn(3, T, 12).to(dtype), randn(3, S, 12, seed=2).to(dtype)
        for mask in make_masks(T, S).values():
            compare(attention, states, mask)


def test_the_general_scorer_agrees_with_its_reference_path():
    attention = build("general", query_dim=6, key_dim=5, project="none")
    states = randn(3, 4, 6), randn(3, 7, 5, seed=2)
    for mask in make_masks(4, 7).values():
        compare(attention, states, mask)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("form", ["heads", "grouped", "one-for-all"])
@pytest.mark.parametrize("name", ["rotary", "alibi", "t5"])
def test_positions_agree_for_every_mask(name, form, dtype):
    attention = build(query_dim=16, key_dim=16, **FORMS[form]).to(dtype)
    positions = {
        "rotary": Rotary(head_dim=4),
        "alibi": ALiBi(heads=4),
        "t5": T5(heads=4, causal=True, buckets=4, max_distance=8),
    }
    position = positions[name].to(dtype)
    for T, S in [(5, 5), (1, 7)]:
        states = randn(3, T, 16).to(dtype), randn(3, S, 16, seed=2).to(dtype)
        for mask in make_masks(T, S).values():
            compare(attention, states, mask, position)


def test_inputs_that_are_not_contiguous():
    attention = build(query_dim=12, key_dim=12, heads=4, kv_heads=2)
    query, memory = randn(12, 5, 3).permute(2, 1, 0), randn(3, 14, 12, seed=2)[:, ::2]
    assert not query.is_contiguous()
    assert not memory.is_contiguous()
    for mask in make_masks(5, 7).values():
        compare(attention, (query, memory), mask)


def test_known_values():
    torch.manual_seed(0)
    query = torch.randn(2, 2, 3, 5, dtype=torch.float64)
    key = torch.randn(2, 2, 4, 5, dtype=torch.float64)
    values = torch.randn(2, 2, 4, 5, dtype=torch.float64)
    keys = torch.tensor([[True, True, False, True], [True, False, False, False]])

    context = fused_softmax(query, key, values, Mask(keys=keys), scale=5**-0.5)

    assert context.shape == (2, 2, 3, 5)
    for b in range(2):
        for h in range(2):
            for t in range(3):
                valid = [s for s in range(4) if keys[b, s]]
                exp_scores = {
                    s: math.exp(float(query[b, h, t] @ key[b, h, s]) / math.sqrt(5)) for s in valid
                }
                expected = sum(exp_scores[s] * values[b, h, s] for s in valid) / sum(
                    exp_scores.values()
                )
                torch.testing.assert_close(context[b, h, t], expected, rtol=0, atol=1e-12)


class KernelCalls(TorchFunctionMode):
    """Collects the arguments of torch's attention kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.arguments: list[dict[str, object]] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.scaled_dot_product_attention:
            self.arguments.append({"heads": [part.shape[1] for part in args], **(kwargs or {})})
        return func(*args, **(kwargs or {}))


def kernel_arguments(mask: Mask, T: int = 4, S: int = 4, kv_heads: int = 4) -> dict[str, object]:
    query, (keys, values) = randn(3, 4, T, 2), randn(2, 3, kv_heads, S, 2)
    with KernelCalls() as calls:
        fused_softmax(query, keys, values, mask, scale=1.0)
    (arguments,) = calls.arguments
    return arguments


@pytest.mark.parametrize(
    ("mask", "causal"),
    [
        (Mask(), False),
        (Mask(causal=True), True),
        (Mask(keys=torch.ones(3, 4, dtype=torch.bool)), False),
        (Mask(keys=torch.ones(3, 4, dtype=torch.bool), causal=True), True),
        (Mask(causal=True, offset=3), False),
    ],
    ids=["none", "causal", "unused-keys", "causal-unused-keys", "all-seen"],
)
def test_no_mask_is_built_if_a_flag_is_enough(mask, causal):
    arguments = kernel_arguments(mask)

    assert arguments["attn_mask"] is None
    assert arguments["is_causal"] is causal


def test_a_mask_of_keys_is_not_expanded():
    arguments = kernel_arguments(Mask(keys=lengths_mask(4, 2, 1, S=4)))

    assert arguments["attn_mask"].shape == (3, 1, 1, 4)


def test_grouped_heads_are_not_copied():
    assert kernel_arguments(Mask(), kv_heads=2)["heads"] == [4, 2, 2]
    assert kernel_arguments(Mask(), kv_heads=2)["enable_gqa"] is True
    assert kernel_arguments(Mask(), T=1, kv_heads=2)["heads"] == [2, 2, 2]


def test_weights_are_dropped_inside_the_kernel():
    S, p = 64, 0.25
    query, keys = randn(8, 2, S, 4), randn(8, 2, S, 4, seed=2)
    values = torch.eye(S).expand(8, 2, S, S)
    expected = fused_softmax(query, keys, values, Mask(), scale=0.5)
    torch.manual_seed(0)

    weights = fused_softmax(query, keys, values, Mask(), scale=0.5, dropout_p=p)

    dropped = weights == 0
    assert abs(float(dropped.float().mean()) - p) < 0.01  # 65,536 weights: six deviations
    torch.testing.assert_close(weights[~dropped], expected[~dropped] / (1 - p))
    torch.manual_seed(0)
    again = fused_softmax(query, keys, values, Mask(), scale=0.5, dropout_p=p)
    assert torch.equal(again, weights)


def test_dropout_uses_the_fused_path_in_training_and_has_no_effect_in_evaluation():
    attention = accelerate(build(heads=2, align=Blueprint.of(Soft, dropout=0.5)))
    states = randn(2, 5, 6)

    with KernelCalls() as calls:
        attention(states, states)
        attention.eval()
        attention(states, states)

    assert [call["dropout_p"] for call in calls.arguments] == [0.5, 0.0]


def test_wide_heads_are_attended_with_separate_kernels(monkeypatch):
    """The condition is that of a GPU; the third item is fully masked."""
    q, k, v = (randn(3, 2, length, 8).requires_grad_() for length in (1, 4, 4))
    mask = Mask(keys=lengths_mask(4, 2, 0, S=4))
    fused = fused_softmax(q, k, v, mask, scale=0.5)
    backends = []
    select = softmax_module.sdpa_kernel
    monkeypatch.setattr(softmax_module, "sdpa_kernel", lambda b: backends.append(b) or select(b))
    monkeypatch.setattr(softmax_module, "_is_wide", lambda *_: True)
    separate = fused_softmax(q, k, v, mask, scale=0.5)
    torch.testing.assert_close(separate, fused)
    gradients = [torch.autograd.grad(each.square().sum(), (q, k, v)) for each in (fused, separate)]
    torch.testing.assert_close(*gradients)
    assert len(backends) == 1


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("keys", "queries", "needs_grad", "is_used"),
    [
        (100, 100, False, False),
        (2000, 1, False, False),
        (2000, 2000, False, True),
        (100, 100, True, True),
    ],
)
def test_cudnn_is_not_used_for_few_scores_without_gradients(keys, queries, needs_grad, is_used):
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("torch does not prefer the attention of cuDNN on this GPU")
    memory = torch.randn(2, 4, keys, 64, device="cuda", dtype=torch.bfloat16)
    query = torch.randn(2, 8, queries, 64, device="cuda", dtype=torch.bfloat16)
    memory.requires_grad_(needs_grad)
    mask = Mask(causal=queries > 1)
    called = set()

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            called.add(str(function))
            return function(*args, **kwargs or {})

    with Names():
        fused_softmax(query, memory, memory, mask, scale=0.1)
    assert any("cudnn" in name for name in called) == is_used, called
    assert torch.backends.cuda.cudnn_sdp_enabled()
