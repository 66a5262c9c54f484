import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo.plugin import Memory
from zoo_recurrent.online_rnn import OnlineRNN
from zoo_sampling.greedy import Greedy
from zoo_tokens.token import Token

LENGTHS = [4, 1, 2, 0]


def build(cell: str = "lstm", layers: int = 1) -> OnlineRNN:
    torch.manual_seed(0)
    decoder = OnlineRNN(
        embedding=Token(vocab=7, dim=3), memory_dim=4, hidden=4, cell=cell, layers=layers
    ).double()
    torch.nn.init.normal_(decoder.emission.logit.weight, std=4.0)
    torch.nn.init.constant_(decoder.emission.logit.bias, -0.5)
    return decoder.eval()


def constant_emission(probability: float) -> OnlineRNN:
    decoder = build()
    torch.nn.init.zeros_(decoder.emission.logit.weight)
    torch.nn.init.constant_(decoder.emission.logit.bias, math.log(probability / (1 - probability)))
    return decoder.train()


def record(decoder, tokens, memory):
    """Return the logits, the frame of each token (S after the last one) and the samples."""
    with zoo.recording(decoder) as weights, zoo.record_samples(decoder) as samples:
        logits = decoder(tokens, memory)
    (calls,) = weights.values()
    one_hot = torch.cat([calls[0][:, 0], 1 - calls[0][:, 0].sum(dim=-1, keepdim=True)], dim=-1)
    return logits, one_hot.argmax(dim=-1), samples.total()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_logits_equal_a_loop_over_frames(cell, layers, make_memory, tokens, reference_stack):
    decoder, memory = build(cell, layers), make_memory()
    logits, frames, _ = record(decoder, tokens, memory)
    weight, bias = (p.detach().numpy() for p in decoder.emission.logit.parameters())
    table = decoder.embedding.table.weight.detach().numpy()
    waits = 0
    for item, length in enumerate(LENGTHS):
        names = ("h", "c") if cell == "lstm" else ("h",)
        state = {name: np.zeros((layers, 4)) for name in names}
        i, previous = 0, 1.0
        for t, y in enumerate(tokens[item].tolist()):
            while True:
                x = memory.states[item, i].numpy() if i < length else np.zeros(4)
                inputs = np.concatenate([x, table[y], [previous]])
                state = reference_stack(cell, inputs, state, decoder.cells.cells)
                at_end, i = i >= length, min(i + 1, length)
                emit = at_end or (weight @ state["h"][-1] + bias).item() > 0
                previous = float(emit)
                if emit:
                    break
                waits += 1
            assert frames[item, t] == (4 if at_end else i - 1)
            expected = decoder.out(torch.from_numpy(state["h"][-1]))
            torch.testing.assert_close(logits[item, t], expected, rtol=0, atol=1e-12)
    assert waits > 0  # the test has power


def test_logprobs_and_entropies_of_a_constant_probability():
    p, decoder = 0.3, constant_emission(0.3)
    torch.manual_seed(0)
    memory = Memory(torch.randn(50, 6, 4).double(), torch.ones(50, 6).bool(), torch.zeros(50, 1))
    _, frames, samples = record(decoder, torch.ones(50, 3, dtype=torch.long), memory)
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    for item in range(50):
        start = 0
        for t, frame in enumerate(frames[item].tolist()):
            emitted = int(frame < 6)  # after the last frame there is no decision
            reads = min(frame, 6) - start
            logprob = reads * math.log(1 - p) + emitted * math.log(p)
            assert samples.logprob[item, t].item() == pytest.approx(logprob, abs=1e-9)
            decisions = reads + emitted
            assert samples.entropy[item, t].item() == pytest.approx(decisions * entropy, abs=1e-9)
            start = min(frame + 1, 6)


def test_frequencies_of_the_frames_match_their_probabilities():
    n, p, decoder = 4000, 0.4, constant_emission(0.4)
    torch.manual_seed(0)
    memory = Memory(torch.zeros(n, 3, 4).double(), torch.ones(n, 3).bool(), torch.zeros(n, 1))
    _, frames, samples = record(decoder, torch.ones(n, 1, dtype=torch.long), memory)
    for frame, expected in enumerate([p, p * (1 - p), p * (1 - p) ** 2, (1 - p) ** 3]):
        here = frames[:, 0] == frame
        frequency, error = here.double().mean().item(), (expected * (1 - expected) / n) ** 0.5
        assert abs(frequency - expected) < 4 * error
        torch.testing.assert_close(
            samples.logprob[here, 0].exp(), torch.full((int(here.sum()),), expected).double()
        )


@pytest.mark.parametrize("training", [False, True])
def test_output_is_online(training):
    """A token does not depend on the frames after the one at which it was emitted."""
    torch.manual_seed(1)
    model = zoo.compose("luo-tiny").train(training)
    torch.nn.init.normal_(model.decoder.emission.logit.weight, std=4.0)
    source = torch.randint(3, 8, (16, 9))
    target = torch.randint(3, 8, (16, 5))

    def run(source):
        torch.manual_seed(2)  # the same decisions, as long as their probabilities are equal
        with torch.no_grad():
            return record(model.decoder, target, model.encode(source))[:2]

    logits, frames = run(source)
    compared = 0
    for i in range(8):
        changed = source.clone()
        changed[:, i + 1 :] = torch.randint(3, 8, (16, 8 - i))
        other_logits, other_frames = run(changed)
        before = frames <= i
        assert torch.equal(other_frames[before], frames[before])
        assert torch.equal(other_logits[before], logits[before])
        later = frames > i
        assert not torch.equal(other_logits[later], logits[later])
        compared += int(before.sum())
    assert compared > 50


def test_the_published_spec_is_online():
    model = zoo.load_spec("luo-2016").resolve()["model"]
    assert not model["encoder"]["bidirectional"]
    assert model["decoder"]["type"].endswith(":online-rnn")


def test_masked_frames_between_valid_ones_are_skipped(tokens):
    decoder = build()
    states = torch.randn(4, 6, 4, generator=torch.Generator().manual_seed(0)).double()
    mask = torch.tensor([[True, False, True, True, False, True]]).expand(4, 6)
    logits, frames, _ = record(decoder, tokens, Memory(states, mask, states[:, 0]))
    kept = states[:, [0, 2, 3, 5]]
    expected, kept_frames, _ = record(
        decoder, tokens, Memory(kept, torch.ones(4, 4).bool(), kept[:, 0])
    )
    torch.testing.assert_close(logits, expected)
    positions = torch.tensor([0, 2, 3, 5, 6])
    assert torch.equal(frames, positions[kept_frames])


@pytest.mark.parametrize("training", [False, True])
def test_an_empty_batch_gives_empty_logits(training):
    decoder = build().train(training)
    memory = Memory(torch.zeros(0, 4, 4).double(), torch.ones(0, 4).bool(), torch.zeros(0, 1))
    assert decoder(torch.ones(0, 3, dtype=torch.long), memory).shape == (0, 3, 7)


def test_parameter_names():
    assert {name: tuple(p.shape) for name, p in build().named_parameters()} == {
        "embedding.table.weight": (7, 3),
        "cells.cells.0.weight_ih": (16, 8),
        "cells.cells.0.weight_hh": (16, 4),
        "cells.cells.0.bias_ih": (16,),
        "cells.cells.0.bias_hh": (16,),
        "emission.logit.weight": (1, 4),
        "emission.logit.bias": (1,),
        "out.weight": (7, 4),
        "out.bias": (7,),
    }


FILLER, SYMBOLS = 11, 10


def filtering_batch(B, generator):
    """Return ten symbols, each after 0 or 1 filler; the target has no fillers."""
    symbols = torch.randint(3, FILLER, (B, SYMBOLS), generator=generator)
    source = torch.zeros(B, 2 * SYMBOLS, dtype=torch.long)
    for row, labels in zip(source, symbols.tolist(), strict=True):
        counts = torch.randint(0, 2, (SYMBOLS,), generator=generator).tolist()
        pairs = zip(counts, labels, strict=True)
        frames = [x for count, label in pairs for x in [FILLER] * count + [label]]
        row[: len(frames)] = torch.tensor(frames)
    return {"source": source, "target": F.pad(F.pad(symbols, (1, 0), value=1), (0, 1), value=2)}


@pytest.mark.slow
def test_decisions_are_learned_on_a_monotone_task():
    """The decoder learns to emit each symbol at the frame where it occurs, and no fillers."""
    overrides = [
        "model.source.vocab=12",
        "model.encoder.hidden=16",
        "model.decoder.hidden=16",
        "objective.lambda_e=0.05",
    ]
    torch.manual_seed(0)
    model = zoo.compose("luo-tiny", overrides=overrides)
    objective = zoo.objective(zoo.load_spec("luo-tiny", overrides=overrides))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(0)
    for _ in range(400):
        optimizer.zero_grad()
        objective(model(filtering_batch(32, generator))).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    batch = filtering_batch(64, torch.Generator().manual_seed(1))
    generated = model.eval().generate({"source": batch["source"]}, Greedy(), max_length=SYMBOLS + 1)
    tokens = F.pad(generated.tokens[:, 0], (0, SYMBOLS + 1))[:, : SYMBOLS + 1]
    correct = (tokens == batch["target"][:, 1:]).all(dim=1).double().mean().item()
    with torch.no_grad():
        _, frames, _ = record(model.decoder, batch["target"][:, :-2], model.encode(batch["source"]))
    read = F.pad(batch["source"], (0, 1)).gather(1, frames)
    aligned = (read == batch["target"][:, 1:-1]).double().mean().item()
    print(f"\ncorrect sequences {correct:.3f}, tokens emitted at their frame {aligned:.3f}")
    assert correct > 0.9
    assert aligned > 0.9


def test_a_model_without_samples_in_its_outputs_rejects_the_decoder():
    model = {
        "type": "language-model",
        "embedding": {"type": "token", "vocab": 8, "dim": 4},
        "decoder": {"type": "online-rnn", "hidden": 4},
    }
    with pytest.raises(zoo.SpecError, match=r"Emission samples in training.*use another part"):
        zoo.compose({"zoo": 1, "name": "online", "model": model})
