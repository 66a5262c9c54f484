"""Decoding of all tokens at once, compared with the loop over single tokens.

Tolerances: 1e-5 in float32; in bfloat16 5 % of the largest value.
"""

import pytest
import torch
from torch import Tensor

import zoo
from zoo.plugin import Attention, Blueprint, Memory
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_bahdanau.normalised_additive import NormalisedAdditive
from zoo_fast.recurrent.sequence import _decode
from zoo_luong.concat import Concat
from zoo_luong.dot import Dot
from zoo_luong.general import General
from zoo_recurrent.attentive_rnn import AttentiveRNN
from zoo_recurrent.luong_rnn import LuongRNN
from zoo_recurrent.plain_rnn import PlainRNN
from zoo_recurrent.pointer_rnn import PointerRNN
from zoo_recurrent.recurrent_decoder import RecurrentDecoder
from zoo_tokens.token import Token

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CELLS = ["rnn", "lstm", "gru", "gru-cho"]


@pytest.fixture(autouse=True)
def exact_kernels(monkeypatch):
    """cuDNN rounds to TF32 by default."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def build(kind=AttentiveRNN, scorer=Additive, hidden=6, **params):
    torch.manual_seed(0)
    token = Token(vocab=9, dim=3)
    if kind is not PlainRNN:
        widths = {"hidden": 7} if scorer in (Additive, Concat, NormalisedAdditive) else {}
        params["attention"] = Blueprint.of(
            Attention, scorer=Blueprint.of(scorer, **widths), align=Blueprint.of(Soft)
        )
    decoder = Blueprint.of(kind, hidden=hidden, **params).build(
        embedding=token, memory_dim=hidden, summary_dim=5, carry={}
    )
    return zoo.accelerate(decoder.to(DEVICE))


def make_memory(lengths=(4, 1, 2, 0), S=4, D=6) -> Memory:
    """Return a ragged memory that is not contiguous; one item is empty."""
    torch.manual_seed(1)
    B = len(lengths)
    states = torch.randn(B, D, S, device=DEVICE).transpose(1, 2)
    mask = torch.arange(S, device=DEVICE) < torch.tensor(lengths, device=DEVICE)[:, None]
    tokens = torch.randint(0, 9, (B, S), device=DEVICE)
    return Memory(states, mask, torch.randn(B, 5, device=DEVICE), tokens=tokens)


def run(decoder: RecurrentDecoder, memory: Memory, T: int) -> list[Tensor]:
    """Return logits, last state and gradients of a step with T tokens."""
    torch.manual_seed(2)
    states = memory.states.detach().requires_grad_()
    memory = Memory(states, memory.mask, memory.summary, tokens=memory.tokens)
    tokens = torch.randint(0, 9, (len(states), T), device=DEVICE)
    logits, state = decoder.step(tokens, decoder.start(memory, steps=T))
    ends = [state.per_hypothesis[name] for name in decoder.cells.state_names]
    loss = (logits * torch.linspace(-1, 1, 9, device=DEVICE)).square().sum()
    loss = loss + sum(end.square().sum() for end in ends)
    leaves = [*decoder.parameters(), states]
    gradients = torch.autograd.grad(loss, leaves, materialize_grads=True)
    return [tensor.detach() for tensor in (logits, *ends, *gradients)]


def assert_equal_to_loop(decoder, memory, T=5, tolerance=1e-5):
    actual = run(decoder, memory, T)
    calls = []  # of the cells: with a hook they are called for each token
    hook = decoder.cells.register_forward_hook(lambda *_: calls.append(1))
    expected = run(decoder, memory, T)
    hook.remove()
    assert len(calls) == T
    for value, reference in zip(actual, expected, strict=True):
        largest = max(1.0, float(reference.abs().max()))
        torch.testing.assert_close(value, reference, rtol=0, atol=tolerance * largest)


@pytest.fixture
def one_operator(monkeypatch):
    """Fail if a cell is called, so that the loop over single tokens cannot be used."""
    monkeypatch.setattr("zoo_recurrent.cells.CellStack.forward", None)


@pytest.mark.parametrize(
    ("cell", "scorer"),
    [
        *((cell, Additive) for cell in CELLS),
        *(("gru", scorer) for scorer in (NormalisedAdditive, Concat, Dot, General)),
        ("gru-cho", Dot),
    ],
)
def test_attentive_rnn(cell, scorer):
    assert_equal_to_loop(build(scorer=scorer, cell=cell), make_memory())


@pytest.mark.parametrize("cell", CELLS)
def test_pointer_rnn(cell):
    assert_equal_to_loop(build(PointerRNN, cell=cell), make_memory())


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("scorer", [Additive, General])
def test_luong_rnn_with_input_feeding(scorer, cell):
    assert_equal_to_loop(build(LuongRNN, scorer, cell=cell), make_memory())


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kind", [PlainRNN, LuongRNN])
def test_decoders_without_feedback(kind, cell):
    params = {"input_feeding": False} if kind is LuongRNN else {}
    assert_equal_to_loop(build(kind, cell=cell, layers=2, **params), make_memory())


@pytest.mark.parametrize(("B", "S", "T"), [(1, 1, 2), (1, 3, 2), (2, 1, 3)])
def test_sizes_of_one(B, S, T):
    assert_equal_to_loop(build(), make_memory((S,) * B, S), T)


@pytest.mark.parametrize("cell", CELLS)
def test_autocast_to_bfloat16(cell, one_operator):
    decoder, memory = build(cell=cell), make_memory()
    expected = run(decoder, memory, 3)
    with torch.autocast(DEVICE, torch.bfloat16):
        actual = run(decoder, memory, 3)

    assert actual[0].dtype == torch.bfloat16
    for value, reference in zip(actual, expected, strict=True):
        largest = max(1.0, float(reference.abs().max()))
        torch.testing.assert_close(value.to(reference), reference, rtol=0, atol=0.05 * largest)


@pytest.fixture
def kernels(monkeypatch):
    """Use the Triton kernels, in the interpreter if there is no GPU."""
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")


@pytest.mark.parametrize(
    ("cell", "scorer"), [("rnn", Dot), ("lstm", Additive), ("gru", Additive), ("gru-cho", Dot)]
)
def test_kernels_in_float32(cell, scorer, kernels):
    assert_equal_to_loop(build(scorer=scorer, cell=cell), make_memory(), T=2)


@pytest.mark.parametrize("cell", CELLS)
def test_kernels_in_bfloat16(cell, kernels):
    memory = make_memory()
    memory = Memory(memory.states.bfloat16(), memory.mask, memory.summary.bfloat16())
    assert_equal_to_loop(build(cell=cell).bfloat16(), memory, T=2, tolerance=0.05)


def test_kernels_with_more_than_one_block(kernels):
    """Widths and lengths exceed a block and are not multiples of it."""
    decoder = build(hidden=131)
    assert_equal_to_loop(decoder, make_memory((19, 3), S=19, D=131), T=2)


def test_kernels_of_a_pointer_rnn(kernels):
    assert_equal_to_loop(build(PointerRNN), make_memory(), T=3)


@pytest.mark.parametrize("kind", [AttentiveRNN, PointerRNN, PlainRNN, LuongRNN])
def test_cells_are_not_called(kind, one_operator):
    logits, *_ = run(build(kind), make_memory(), 3)
    assert logits.shape[:2] == (4, 3)


@pytest.mark.parametrize("kind", [AttentiveRNN, PointerRNN])
def test_recorded_weights_of_each_token(kind):
    decoder, memory = build(kind), make_memory()
    tokens = torch.randint(0, 9, (4, 3), device=DEVICE)
    with zoo.recording(decoder) as log:
        logits = decoder(tokens, memory)

    assert [weights.shape for weights in log["attention"]] == [(4, 1, 1, 4)] * 3
    torch.testing.assert_close(logits, decoder(tokens, memory), rtol=0, atol=1e-5)


def test_operator_passes_the_checks_of_torch():
    torch.manual_seed(0)
    B, T, S, H, D = 2, 3, 4, 5, 6
    shapes = [(B, T, 3 * H), (B, H), (0,), (1, D + 3 * H, H), (1, D + 3 * H), (1, 0, H), (1, 0)]
    shapes += [(B, S, D), (B, S, 3 * H), (D,), (0, H)]
    tensors = [torch.randn(shape, requires_grad=True) for shape in shapes]
    mask = torch.ones(B, S, dtype=torch.bool)
    torch.library.opcheck(_decode, (tensors, mask, "gru", "additive", 0))


def test_torch_compile_does_not_unroll_the_loops():
    calls = []

    def count_calls(graph, _):
        calls.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    model = zoo.accelerate(zoo.compose("bahdanau-reversal"))
    batch = model.example(2, 6, torch.Generator().manual_seed(0))
    compiled = torch.compile(model, backend=count_calls, fullgraph=True)

    torch.testing.assert_close(compiled(batch).logits, model(batch).logits)
    # One call of the encoder, in both directions, and one of the decoder.
    assert sum("decode_sequence" in call for call in calls) == 2
    assert len(calls) < 200
