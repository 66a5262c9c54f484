"""Dropout of the decoder: of its activations, recurrent weights and tokens.

The expected values are computed with torch.lstm and masks that are sampled in the same order.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.plugin import Blueprint, Memory
from zoo_recurrent.plain_rnn import PlainRNN
from zoo_tokens.token import Token

TOKENS = torch.tensor([[1, 4, 2, 6, 3, 4], [5, 5, 1, 2, 6, 5]])
ALL = {"dropout": 0.5, "shared_dropout": True, "weight_dropout": 0.5, "token_dropout": 0.25}


def build(**params) -> PlainRNN:
    torch.manual_seed(0)
    blueprint = Blueprint.of(PlainRNN, hidden=16, layers=2, init="zeros", **params)
    return blueprint.build(embedding=Token(vocab=7, dim=16), summary_dim=0, carry={})


def run(decoder: PlainRNN, seed: int = 1) -> Tensor:
    torch.manual_seed(seed)
    logits: Tensor = decoder(TOKENS, Memory.empty(2))
    return logits


def lstm(decoder: PlainRNN, x: Tensor, layer: int, weight_hh: Tensor | None = None) -> Tensor:
    cell = decoder.cells.layers()[layer]
    weights = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    if weight_hh is not None:
        weights[1] = weight_hh
    zeros = x.new_zeros(1, len(x), 16)
    h, _, _ = torch.lstm(x, (zeros, zeros), weights, True, 1, 0.0, True, False, True)
    return h


def test_by_default_each_step_has_its_own_mask():
    decoder = build(dropout=0.5)

    logits = run(decoder)

    torch.manual_seed(1)
    h = lstm(decoder, F.dropout(decoder.embedding(TOKENS), 0.5), 0)
    masks = [F.dropout(torch.ones(2, 16), 0.5) for _ in range(TOKENS.shape[1])]
    h = lstm(decoder, h * torch.stack(masks, dim=1), 1)
    expected = decoder.out(F.dropout(h.contiguous(), 0.5))
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-6)


def test_parameters_and_random_numbers_without_dropout():
    plain, other = build(), build(shared_dropout=True, weight_dropout=0.0, token_dropout=0.0)

    assert plain.state_dict().keys() == build(**ALL).state_dict().keys()
    assert torch.equal(run(plain), run(other))
    before = torch.get_rng_state()
    other(TOKENS, Memory.empty(2))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("loop", [False, True])
def test_recurrent_weights_have_one_mask_for_all_steps(loop):
    decoder = build(weight_dropout=0.5)
    before = {name: weight.clone() for name, weight in decoder.state_dict().items()}
    if loop:
        decoder.cells.register_forward_hook(lambda *_: None)

    logits = run(decoder)

    torch.manual_seed(1)
    dropped = [F.dropout(cell.weight_hh, 0.5) for cell in decoder.cells.layers()]
    h = lstm(decoder, decoder.embedding(TOKENS), 0, dropped[0])
    h = lstm(decoder, h, 1, dropped[1])
    torch.testing.assert_close(logits, decoder.out(h), rtol=0, atol=1e-6)
    assert not torch.equal(logits, run(decoder, seed=2))
    logits.square().sum().backward()
    for cell, masked in zip(decoder.cells.layers(), dropped, strict=True):
        assert torch.equal(cell.weight_hh.grad != 0, masked != 0)
    for name, weight in decoder.state_dict().items():
        assert torch.equal(weight, before[name])


def test_shared_masks_of_inputs_layers_and_outputs():
    decoder = build(dropout=0.5, shared_dropout=True)

    logits = run(decoder)

    torch.manual_seed(1)
    masks = [F.dropout(torch.ones(2, 1, 16), 0.5) for _ in range(3)]
    h = lstm(decoder, decoder.embedding(TOKENS) * masks[0], 0)
    h = lstm(decoder, h * masks[1], 1)
    torch.testing.assert_close(logits, decoder.out(h * masks[2]), rtol=0, atol=1e-6)


def test_a_dropped_token_is_zero_at_all_its_positions():
    decoder = build(token_dropout=0.5)
    torch.manual_seed(1)

    inputs = decoder.step_inputs(TOKENS)

    torch.manual_seed(1)
    factors = F.dropout(torch.ones(7), 0.5)
    assert factors[TOKENS].unique().tolist() == [0.0, 2.0]
    torch.testing.assert_close(inputs, decoder.embedding(TOKENS) * factors[TOKENS][..., None])


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
def test_loop_over_tokens_samples_the_same_masks(cell):
    decoder = build(cell=cell, **ALL)
    logits = run(decoder)
    calls = []
    decoder.cells.register_forward_hook(lambda *_: calls.append(1))

    torch.testing.assert_close(run(decoder), logits, rtol=0, atol=1e-5)
    assert len(calls) == TOKENS.shape[1]


def test_masks_do_not_remain_after_a_call():
    decoder, plain = build(**ALL), build()
    run(decoder)
    assert torch.equal(run(decoder.eval()), run(plain.eval()))
    hook = decoder.train().cells.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(decoder)
    hook.remove()
    assert torch.equal(run(decoder.eval()), run(plain))


@pytest.mark.parametrize(("cell", "loop"), [("lstm", True), ("gru", True), ("gru", False)])
def test_autocast_to_bfloat16(cell, loop):
    decoder = build(cell=cell, **ALL)
    if loop:  # not all CPUs have a kernel of torch.lstm for bfloat16
        decoder.cells.register_forward_hook(lambda *_: None)
    expected = run(decoder)

    with torch.autocast("cpu", torch.bfloat16):
        logits = run(decoder)

    assert logits.dtype == torch.bfloat16
    torch.testing.assert_close(logits.float(), expected, rtol=0, atol=0.05)
    logits.float().square().sum().backward()
    for name, weight in decoder.named_parameters():
        assert weight.grad.dtype == torch.float32, name
        assert weight.grad.isfinite().all(), name


def test_torch_compile_samples_new_masks_in_each_call():
    decoder = build(**ALL)
    compiled = torch.compile(decoder, backend="eager", fullgraph=True)

    for seed in (1, 2):
        torch.testing.assert_close(run(compiled, seed), run(decoder, seed), rtol=0, atol=1e-5)
