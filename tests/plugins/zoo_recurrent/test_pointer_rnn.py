import numpy as np
import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo import SpecError, ZooError
from zoo.plugin import Attention, Blueprint, Memory
from zoo_alignment.soft import Soft
from zoo_luong.general import General
from zoo_recurrent.pointer_rnn import PointerRNN
from zoo_recurrent.recurrence import Recurrence
from zoo_sampling.beam import Beam
from zoo_sampling.greedy import Greedy
from zoo_tokens.token import Token

LENGTHS = [4, 1, 2]
SOURCE = torch.tensor([[3, 6, 3, 5], [2, 0, 0, 0], [4, 4, 0, 0]])
TOKENS = torch.tensor([[1, 4, 2, 6], [1, 5, 5, 2], [1, 6, 4, 1]])


def build(cell: str = "lstm", layers: int = 1, heads: int = 1) -> PointerRNN:
    torch.manual_seed(0)
    return PointerRNN(
        embedding=Token(vocab=7, dim=3),
        memory_dim=6,
        summary_dim=5,
        carry={},
        attention=Blueprint.of(
            Attention, scorer=Blueprint.of(General), align=Blueprint.of(Soft), heads=heads
        ),
        recurrence=Recurrence(hidden=4, layers=layers, init="zeros"),
        cell=cell,
    ).double()


def memory(tokens=SOURCE) -> Memory:
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(3, 4, 6, generator=generator, dtype=torch.float64)
    mask = torch.arange(4) < torch.tensor(LENGTHS)[:, None]
    return Memory(states, mask, states[:, 0, :5], tokens=tokens)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_probabilities_match_the_formula_item_by_item(cell, layers, reference_stack):
    decoder, source = build(cell, layers), memory()
    weights = {key: value.numpy() for key, value in decoder.state_dict().items()}
    W = weights["attention.scorers.0.W.weight"]
    logits = decoder(TOKENS, source).detach()

    for item, length in enumerate(LENGTHS):
        keys = source.states[item, :length].numpy()
        names = ("h", "c") if cell == "lstm" else ("h",)
        state, c = {name: np.zeros((layers, 4)) for name in names}, np.zeros(6)
        for t in range(4):
            y = weights["embedding.table.weight"][TOKENS[item, t]]
            state = reference_stack(cell, np.concatenate([y, c]), state, decoder.cells.cells)
            s = state["h"][-1]
            energies = np.exp([s @ W @ h for h in keys])
            a = energies / energies.sum()
            c = a @ keys
            z = weights["gate.weight"] @ np.concatenate([s, c, y]) + weights["gate.bias"]
            p_gen = 1 / (1 + np.exp(-z[0]))
            hidden = weights["combine.weight"] @ np.concatenate([s, c]) + weights["combine.bias"]
            vocab = np.exp(weights["out.weight"] @ hidden + weights["out.bias"])
            p = p_gen * vocab / vocab.sum()
            for i in range(length):
                p[SOURCE[item, i]] += (1 - p_gen) * a[i]
            np.testing.assert_allclose(logits[item, t].exp(), p, rtol=0, atol=1e-10)


def test_probabilities_sum_to_one_with_several_heads():
    total = build(heads=2)(TOKENS, memory()).logsumexp(dim=-1)
    torch.testing.assert_close(total, torch.zeros_like(total))


def test_with_a_closed_gate_only_source_tokens_are_possible():
    decoder = build()
    torch.nn.init.constant_(decoder.gate.bias, -40.0)
    p = decoder(TOKENS, memory()).exp()
    for item, length in enumerate(LENGTHS):
        for token in range(7):
            possible = token in SOURCE[item, :length]
            assert (p[item, :, token] > 1e-3).all() == possible
            assert (p[item, :, token] < 1e-9).all() == (not possible)


def test_a_token_that_is_impossible_has_a_finite_gradient():
    decoder = build().float()
    torch.nn.init.constant_(decoder.gate.bias, -200.0)
    source = memory()
    source = Memory(source.states.float(), source.mask, source.summary.float(), tokens=SOURCE)
    decoder(TOKENS, source)[..., 1].sum().backward()
    assert all(p.grad.isfinite().all() for p in decoder.parameters())


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_equals_single_precision(dtype):
    """The smallest float16 is too large for the probability of a token that is not copied."""
    decoder, source = build().float(), memory()
    torch.nn.init.constant_(decoder.gate.bias, -40.0)
    expected, logits = (
        decoder.to(kind)(
            TOKENS,
            Memory(source.states.to(kind), source.mask, source.summary.to(kind), tokens=SOURCE),
        )
        for kind in (torch.float32, dtype)
    )
    assert logits.dtype == dtype
    assert expected.min() < -30
    torch.testing.assert_close(logits.float(), expected, atol=0.1, rtol=0.02)


def test_a_memory_without_tokens_is_rejected():
    with pytest.raises(ZooError, match=r"'pointer-rnn'.*token IDs.*seq2seq"):
        build()(TOKENS, memory(tokens=None))


def compose(decoder: str = "pointer-rnn", **changes) -> zoo.Model:
    model = {
        "type": "seq2seq",
        "source": {"type": "token", "vocab": 24, "dim": 16},
        "encoder": {"type": "gru", "hidden": 16, "bidirectional": True},
        "decoder": {
            "type": decoder,
            "hidden": 32,
            "attention": {"scorer": {"type": "additive", "hidden": 32}, "align": "soft"},
        },
        "shared": True,
    }
    torch.manual_seed(0)
    return zoo.compose({"zoo": 1, "name": "copy", "model": model | changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"shared": False, "target": {"type": "token", "vocab": 30, "dim": 16}},
            r"'pointer-rnn'.*24 tokens.*30 tokens",
        ),
        (
            {
                "shared": False,
                "source": {"type": "dense", "width": 3, "dim": 8},
                "target": {"type": "token", "vocab": 30, "dim": 16},
            },
            r"'pointer-rnn'.*no vocabulary.*30 tokens",
        ),
    ],
)
def test_unequal_vocabularies_are_rejected(changes, message):
    with pytest.raises(SpecError, match=message):
        compose(**changes)


@torch.no_grad()
def test_token_ids_with_segments_are_copied():
    segments = {"type": "token", "vocab": 24, "dim": 16, "segments": 2}
    target = {"type": "token", "vocab": 24, "dim": 16}
    model = compose(shared=False, source=segments, target=target).eval()
    batch = {"source": torch.tensor([[5, 6, 7]]), "target": torch.tensor([[1, 6, 2]])}
    pairs = torch.stack([batch["source"], torch.zeros(1, 3).long()], dim=-1)
    torch.testing.assert_close(model({**batch, "source": pairs}).logits, model(batch).logits)


def test_generation_does_not_depend_on_padding_or_on_other_items():
    model = compose().eval()
    source = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]])
    together = model.generate({"source": source}, Beam(width=3), max_length=6)
    alone = model.generate({"source": source[1:, :2]}, Beam(width=3), max_length=6)
    torch.testing.assert_close(alone.scores[0], together.scores[1])


def test_compiles():
    model = compose().eval()
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(batch).logits, model(batch).logits)


def copying_batch(B, symbols, generator):
    """Return sources of five tokens; the target is the token after the marker (3)."""
    first, last = symbols
    source = torch.randint(first, last, (B, 5), generator=generator)
    marker = torch.randint(0, 4, (B, 1), generator=generator)
    source.scatter_(1, marker, 3)
    copied = source.gather(1, marker + 1)
    return {"source": source, "target": F.pad(F.pad(copied, (1, 0), value=1), (0, 1), value=2)}


def accuracy_on_unseen_tokens(decoder, steps=150):
    """Train on tokens 4 to 13; return the accuracy on tokens 14 to 23, which never occurred."""
    model, objective = compose(decoder), zoo.objective({**_OBJECTIVE})
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        optimizer.zero_grad()
        objective(model(copying_batch(32, (4, 14), generator))).backward()
        optimizer.step()
    batch = copying_batch(64, (14, 24), torch.Generator().manual_seed(1))
    output = model.eval().generate({"source": batch["source"]}, Greedy(), max_length=2)
    return (output.tokens[:, 0, 0] == batch["target"][:, 1]).double().mean().item()


_OBJECTIVE = {"zoo": 1, "name": "copy", "extends": "bahdanau-2015"}


@pytest.mark.slow
def test_tokens_that_never_occurred_in_training_are_copied():
    assert accuracy_on_unseen_tokens("pointer-rnn") > 0.9
    assert accuracy_on_unseen_tokens("luong-rnn") < 0.1


def test_parameter_names():
    assert {name: tuple(p.shape) for name, p in build().named_parameters()} == {
        "embedding.table.weight": (7, 3),
        "attention.scorers.0.W.weight": (4, 6),
        "cells.cells.0.weight_ih": (16, 9),
        "cells.cells.0.weight_hh": (16, 4),
        "cells.cells.0.bias_ih": (16,),
        "cells.cells.0.bias_hh": (16,),
        "gate.weight": (1, 13),
        "gate.bias": (1,),
        "combine.weight": (4, 10),
        "combine.bias": (4,),
        "out.weight": (7, 4),
        "out.bias": (7,),
    }
