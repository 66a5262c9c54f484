"""NTM and DNC: known addressing weights, and parity with transcriptions of the papers."""

import math

import numpy as np
import pytest
import torch

import zoo
from zoo_memory.dnc import DNC, allocation, previous_products
from zoo_memory.ntm import NTM


def _head(ntm, *, key, strength, gate, sharpness, shifts):
    return torch.tensor([[[*key, strength, gate, sharpness, *shifts]]])


def _ntm(**sizes):
    torch.manual_seed(0)
    return NTM(input_dim=3, hidden=4, slots=4, width=2, **sizes)


MEMORY = torch.tensor([[[1.0, 0], [0, 1], [-1, 0], [0, -1]]])
PREVIOUS = torch.tensor([[[0.0, 1, 0, 0]]])
OFF, ON = -100.0, 100.0


def test_a_closed_gate_only_shifts_the_previous_weights():
    head = _head(_ntm(), key=[9, 0], strength=5.0, gate=OFF, sharpness=ON, shifts=[OFF, OFF, ON])
    weights = _ntm().address(MEMORY, head, PREVIOUS)
    torch.testing.assert_close(weights, torch.tensor([[[0.0, 0, 1, 0]]]))
    head = _head(_ntm(), key=[9, 0], strength=5.0, gate=OFF, sharpness=OFF, shifts=[ON, OFF, OFF])
    weights = _ntm().address(MEMORY, head, PREVIOUS)
    torch.testing.assert_close(weights, torch.tensor([[[1.0, 0, 0, 0]]]))


def test_shifts_are_circular():
    last = torch.tensor([[[0.0, 0, 0, 1]]])
    head = _head(_ntm(), key=[9, 0], strength=5.0, gate=OFF, sharpness=OFF, shifts=[OFF, OFF, ON])
    assert _ntm().address(MEMORY, head, last).argmax().item() == 0


def test_an_open_gate_addresses_by_content():
    head = _head(_ntm(), key=[ON, 0], strength=2.0, gate=ON, sharpness=OFF, shifts=[OFF, ON, OFF])
    weights = _ntm().address(MEMORY, head, PREVIOUS)[0, 0]
    beta = math.log1p(math.exp(2))
    scores = np.exp(beta * np.array([1, 0, -1, 0]))
    np.testing.assert_allclose(weights.numpy(), scores / scores.sum(), rtol=1e-4)


def test_high_sharpness_of_small_weights_is_finite():
    torch.manual_seed(0)
    ntm = NTM(input_dim=3, hidden=4, slots=128, width=2)
    head = _head(ntm, key=[0, 0], strength=OFF, gate=OFF, sharpness=ON, shifts=[OFF, ON, OFF])
    head.requires_grad_()
    uniform = torch.full((1, 1, 128), 1 / 128)
    weights = ntm.address(torch.zeros(1, 128, 2), head, uniform)
    weights.square().sum().backward()
    torch.testing.assert_close(weights, uniform)
    assert head.grad.isfinite().all()


def test_a_write_erases_then_adds_at_the_head():
    ntm = _ntm()
    head = [0.0, 0, 0, OFF, OFF, OFF, ON, OFF]  # no shift
    interface = torch.tensor([[*head, *head, ON, OFF, ON, ON]])
    state = {"memory": torch.full((1, 4, 2), 0.5), "weights": PREVIOUS.expand(1, 2, 4)}
    read, updated = ntm.memory_step(interface, state)
    torch.testing.assert_close(updated["memory"][0, 1], torch.tensor([1.0, 1.5]))
    torch.testing.assert_close(updated["memory"][0, 0], torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(read, torch.tensor([[1.0, 1.5]]))


def test_allocation_prefers_the_least_used_slot():
    usage = torch.tensor([0.5, 0.0, 1.0])
    assert allocation(usage).tolist() == [0.0, 1.0, 0.0]
    usage = torch.tensor([0.8, 0.5, 1.0])
    torch.testing.assert_close(allocation(usage), torch.tensor([0.2 * 0.5, 0.5, 0.0]))
    assert allocation(torch.ones(3)).tolist() == [0, 0, 0]  # full


def _cosine_softmax(memory, key, strength):
    scores = [
        strength * (row @ key) / (np.linalg.norm(row) * np.linalg.norm(key) + 1e-6)
        for row in memory
    ]
    powers = np.exp(np.array(scores) - max(scores))
    return powers / powers.sum()


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _one_plus(x):
    return 1 + np.log1p(np.exp(x))


def _ntm_head(ntm, head, memory, previous):
    """Compute Graves et al. 2014, equations 5 to 9, slot by slot."""
    N, M = ntm.slots, ntm.width
    key, (strength, gate, sharpness), shift_weights = (
        np.tanh(head[:M]),
        head[M : M + 3],
        np.exp(head[M + 3 :]),
    )
    content = _cosine_softmax(memory, key, np.log1p(np.exp(strength)))
    mixed = _sigmoid(gate) * content + (1 - _sigmoid(gate)) * previous
    shift_weights = shift_weights / shift_weights.sum()
    shifted = np.zeros(N)
    for i in range(N):
        for shift, weight in zip(range(-ntm.shift, ntm.shift + 1), shift_weights, strict=True):
            shifted[(i + shift) % N] += mixed[i] * weight
    powers = shifted ** _one_plus(sharpness)
    return powers / powers.sum()


def test_ntm_matches_the_paper():
    torch.manual_seed(0)
    ntm = NTM(input_dim=3, hidden=4, slots=5, width=3, read_heads=2, shift=2).double()
    state = ntm.initial_memory(torch.zeros(1, 3).double())
    memory, weights = state["memory"][0].numpy(), state["weights"][0].numpy()
    for _ in range(6):
        interface = torch.randn(1, 3 * ntm.head_dim + 2 * 3, dtype=torch.float64)
        read, state = ntm.memory_step(interface, state)
        *heads, erase, add = np.split(interface[0].numpy(), [11, 22, 33, 36])
        w = _ntm_head(ntm, heads[-1], memory, weights[-1])
        memory = memory * (1 - np.outer(w, _sigmoid(erase))) + np.outer(w, np.tanh(add))
        reads = [_ntm_head(ntm, heads[r], memory, weights[r]) for r in range(2)]
        weights = np.array([*reads, w])
        np.testing.assert_allclose(state["memory"][0].numpy(), memory, atol=1e-6)
        np.testing.assert_allclose(state["weights"][0].numpy(), weights, atol=1e-6)
        np.testing.assert_allclose(read[0].numpy(), np.concatenate(reads @ memory), atol=1e-6)


def _dnc_step(dnc, interface, s):
    """Compute Graves et al. 2016, Methods, slot by slot, for one item."""
    N, R = dnc.slots, dnc.read_heads
    parts = np.split(interface, np.cumsum(dnc.sizes)[:-1])
    keys, strength, wkey, wstrength, erase, add, free, ga, gw, modes = parts
    psi = [np.prod([1 - _sigmoid(free[r]) * s["reads"][r, n] for r in range(R)]) for n in range(N)]
    u = (s["usage"] + s["write"] - s["usage"] * s["write"]) * psi
    order = np.argsort(u, kind="stable")
    a = np.zeros(N)
    for j, slot in enumerate(order):
        a[slot] = (1 - u[slot]) * np.prod([u[i] for i in order[:j]])
    c = _cosine_softmax(s["memory"], wkey, _one_plus(wstrength[0]))
    w = _sigmoid(gw[0]) * (_sigmoid(ga[0]) * a + (1 - _sigmoid(ga[0])) * c)
    M = s["memory"] * (1 - np.outer(w, _sigmoid(erase))) + np.outer(w, add)
    L = np.zeros((N, N))
    for i in range(N):
        for j in range(N):
            if i != j:
                L[i, j] = (1 - w[i] - w[j]) * s["links"][i, j] + w[i] * s["precedence"][j]
    p = (1 - w.sum()) * s["precedence"] + w
    reads = []
    for r in range(R):
        mode = np.exp(modes.reshape(R, 3)[r])
        mode /= mode.sum()
        content = _cosine_softmax(M, keys.reshape(R, -1)[r], _one_plus(strength[r]))
        previous = s["reads"][r]
        reads.append(mode[0] * L.T @ previous + mode[1] * content + mode[2] * L @ previous)
    reads = np.array(reads)
    return (reads @ M).ravel(), {
        "memory": M,
        "usage": u,
        "links": L,
        "precedence": p,
        "reads": reads,
        "write": w,
    }


def test_dnc_matches_the_paper():
    torch.manual_seed(0)
    dnc = DNC(input_dim=3, hidden=4, slots=5, width=3, read_heads=2).double()
    state = dnc.initial_memory(torch.zeros(1, 3).double())
    reference = {name: value[0].numpy() for name, value in state.items()}
    for _ in range(6):
        interface = torch.randn(1, sum(dnc.sizes), dtype=torch.float64)
        read, state = dnc.memory_step(interface, state)
        expected, reference = _dnc_step(dnc, interface[0].numpy(), reference)
        np.testing.assert_allclose(read[0].numpy(), expected, atol=1e-6)
        for name, value in reference.items():
            np.testing.assert_allclose(state[name][0].numpy(), value, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("controller", ["lstm", "feed-forward"])
@pytest.mark.parametrize("spec", ["ntm-tiny", "dnc-tiny"])
def test_gradients_of_long_sequences_are_finite(spec, controller):
    model = zoo.compose(spec, overrides=[f"model.encoder.controller={controller}"])
    batch = model.example(2, 60, torch.Generator().manual_seed(0))
    model(batch).logits.square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_inputs_of_another_width_raise():
    model = zoo.compose("ntm-tiny")
    batch = model.example(2, 3)
    with pytest.raises(zoo.ZooError, match=r"'source'.*\[2, 3, 9\].*\[B, S, 4\]"):
        model(batch | {"source": torch.zeros(2, 3, 9)})


def test_tagger_restricts_the_loss_to_the_mask():
    model = zoo.compose("ntm-tiny")
    batch = model.example(2, 3)
    mask = torch.tensor([[True, False, True], [False, False, True]])
    assert torch.equal(model(batch | {"mask": mask}).mask, mask)
    assert model(batch).mask.all()


@pytest.mark.parametrize("N", [1, 2, 7, 8])
def test_previous_products_and_their_gradient(N):
    factors = torch.rand(3, N, dtype=torch.float64)
    factors[1, : N // 2] = 0.0
    factors.requires_grad_()
    ones = torch.ones(3, 1, dtype=torch.float64)
    expected = torch.cat([ones, factors[:, :-1]], dim=-1).cumprod(dim=-1)
    torch.testing.assert_close(previous_products(factors), expected)
    assert torch.autograd.gradcheck(previous_products, factors)
