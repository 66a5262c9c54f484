"""`decode` with hand-written decoders and samplers: end of generation, beams, seeds."""

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

from zoo.plugin import (
    Decoder,
    DecodeRequest,
    GenerationInputs,
    Memory,
    Sampler,
    Selection,
    State,
    decode,
)

PAD, EOS, BOS, A, B = range(5)
"""A vocabulary of five tokens; only EOS, A and B are ever generated."""


class HistoryDecoder(Decoder):
    """Logits depend on the item and on all tokens so far, in order."""

    name = "history"

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed
        self.steps: int | None = None
        self.calls = 0

    def start(self, memory: Memory, *, steps: int) -> State:
        self.steps = steps
        per_hypothesis = {"code": torch.zeros(memory.states.shape[0], dtype=torch.long)}
        return State(per_hypothesis, {"item": memory.states[:, 0, 0].long()})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        self.calls += 1
        code, rows = state.per_hypothesis["code"], []
        for t in range(tokens.shape[1]):
            code = code * 5 + tokens[:, t]
            rows.append(torch.stack([self.logits(*key) for key in self.keys(code, state)]))
        return torch.stack(rows, dim=1), state.updated({"code": code})

    def keys(self, code: Tensor, state: State) -> list[tuple[int, int]]:
        return list(zip(state.per_source["item"].tolist(), code.tolist(), strict=True))

    def logits(self, item: int, code: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed * 7919 + item * 104729 + code)
        logits = torch.randn(5, generator=generator) * 2
        logits[[PAD, BOS]] = -math.inf
        return logits


class Weighted(HistoryDecoder):
    """The same, with a parameter."""

    name = "weighted"

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def logits(self, item: int, code: int) -> Tensor:
        return super().logits(item, code) * self.weight


class Scripted(Decoder):
    """Next-token probabilities given by a table over the tokens so far."""

    name = "scripted"

    def __init__(self, *, script: dict[tuple[int, ...], dict[int, float]]) -> None:
        super().__init__()
        self.script = script

    def start(self, memory: Memory, *, steps: int) -> State:
        return State({"tokens": torch.zeros(memory.states.shape[0], 0, dtype=torch.long)})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        tokens = torch.cat([state.per_hypothesis["tokens"], tokens], dim=1)
        logits = torch.full((len(tokens), 1, 5), -math.inf)
        for row, history in enumerate(tokens.tolist()):
            # Finished hypotheses are stepped too; their logits must not matter.
            for token, p in self.script.get(tuple(history), {A: 1.0}).items():
                logits[row, 0, token] = math.log(p)
        return logits, state.updated({"tokens": tokens})


class Best(Sampler):
    """The most probable token, one hypothesis."""

    name = "best"

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        best, tokens = logprobs.max(dim=-1)
        return Selection(tokens, torch.zeros_like(tokens), scores + best)


class Beam(Sampler):
    """The W most probable continuations of the W hypotheses."""

    name = "simple-beam"

    def __init__(self, *, width: int) -> None:
        self.width = width

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        V = logprobs.shape[-1]
        best, flat = (scores[..., None] + logprobs).flatten(1).topk(self.width, dim=-1)
        return Selection(flat % V, flat // V, best)


class Multinomial(Sampler):
    """A token sampled from the distribution."""

    name = "multinomial"

    def select(
        self, logprobs: Tensor, scores: Tensor, generator: torch.Generator | None = None
    ) -> Selection:
        tokens = torch.multinomial(logprobs[:, 0].exp(), 1, generator=generator)
        return Selection(
            tokens, torch.zeros_like(tokens), scores + logprobs[:, 0].gather(1, tokens)
        )


def memory(items: int = 1) -> Memory:
    """The only state of item i is the number i."""
    states = torch.arange(float(items))[:, None, None]
    return Memory(states, torch.ones(items, 1, dtype=torch.bool), states[:, 0])


def run(decoder: Decoder, sampler: Sampler, max_length: int, items: int = 1, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    return decode(
        GenerationInputs(decoder, memory(items), bos=BOS, eos=EOS, pad=PAD),
        DecodeRequest(sampler=sampler, max_length=max_length, generator=generator),
    )


def every_sequence(
    decoder: HistoryDecoder, item: int, max_length: int
) -> dict[tuple[int, ...], float]:
    """Return every sequence up to EOS or max_length tokens, with its log-probability."""
    sequences = {}
    for length in range(1, max_length + 1):
        for body in itertools.product((A, B), repeat=length - 1):
            for last in (EOS, A, B) if length == max_length else (EOS,):
                sequence, code, total = (*body, last), BOS, 0.0
                for token in sequence:
                    logprobs = decoder.logits(item, code).double().log_softmax(dim=-1)
                    total += logprobs[token].item()
                    code = code * 5 + token
                sequences[sequence] = total
    return sequences


def test_generation_stops_at_the_end_token():
    script = {(BOS,): {A: 1.0}, (BOS, A): {B: 0.75, EOS: 0.25}, (BOS, A, B): {EOS: 0.5, A: 0.5}}

    decoded = run(Scripted(script=script), Best(), max_length=9)

    assert decoded.tokens.tolist() == [[[A, B, EOS]]]
    # Of two equal logits the first is selected: EOS is the lower token ID.
    assert decoded.scores.item() == pytest.approx(math.log(0.75 * 0.5), abs=1e-6)


def test_generation_stops_at_max_length_without_an_end_token():
    decoder = Scripted(script={})

    decoded = run(decoder, Best(), max_length=4)

    assert decoded.tokens.tolist() == [[[A, A, A, A]]]


def test_max_length_includes_the_end_token():
    script = {(BOS,): {A: 1.0}, (BOS, A): {EOS: 1.0}}

    assert run(Scripted(script=script), Best(), max_length=2).tokens.tolist() == [[[A, EOS]]]
    assert run(Scripted(script=script), Best(), max_length=1).tokens.tolist() == [[[A]]]


def test_a_finished_item_is_padded_and_keeps_its_score():
    decoder = HistoryDecoder(seed=3)

    decoded = run(decoder, Best(), max_length=6, items=8)

    lengths = []
    for item in range(8):
        expected, code, total = [], BOS, 0.0
        while len(expected) < 6 and EOS not in expected:
            logprobs = decoder.logits(item, code).log_softmax(dim=-1)
            expected.append(int(logprobs.argmax()))
            total += logprobs.max().item()
            code = code * 5 + expected[-1]
        lengths.append(len(expected))
        padding = [PAD] * (decoded.tokens.shape[-1] - len(expected))
        assert decoded.best()[item] == expected + padding
        assert decoded.scores[item, 0].item() == pytest.approx(total, abs=1e-5)
    assert min(lengths) < max(lengths) == decoded.tokens.shape[-1]


def test_decoding_stops_when_all_items_have_ended():
    script = {(BOS,): {EOS: 1.0}}
    stepped = HistoryDecoder(seed=3)

    assert run(Scripted(script=script), Best(), max_length=50, items=3).tokens.shape == (3, 1, 1)
    decoded = run(stepped, Best(), max_length=50, items=8)
    assert stepped.calls == decoded.tokens.shape[-1] < 50


def test_the_decoder_receives_the_maximum_number_of_steps():
    decoder = HistoryDecoder()

    run(decoder, Best(), max_length=3)

    assert decoder.steps == 3


def test_a_beam_finds_a_better_sequence_than_greedy():
    # Greedy selects A (0.6), then at most 0.5; B and then EOS has 0.4 * 0.9.
    script = {
        (BOS,): {A: 0.6, B: 0.4},
        (BOS, A): {EOS: 0.5, A: 0.3, B: 0.2},
        (BOS, B): {EOS: 0.9, A: 0.1},
    }

    greedy = run(Scripted(script=script), Best(), max_length=2)
    beam = run(Scripted(script=script), Beam(width=2), max_length=2)

    assert greedy.tokens.tolist() == [[[A, EOS]]]
    assert beam.tokens.tolist() == [[[B, EOS], [A, EOS]]]
    torch.testing.assert_close(
        beam.scores, torch.tensor([[0.4 * 0.9, 0.6 * 0.5]]).log(), rtol=0, atol=1e-6
    )


def test_a_finished_hypothesis_stays_in_the_beam_with_its_score():
    # "EOS" has probability 0.3; "A A EOS" has 0.7 * 0.9 * 0.9, two steps later.
    script = {
        (BOS,): {EOS: 0.3, A: 0.7},
        (BOS, A): {A: 0.9, B: 0.1},
        (BOS, A, A): {EOS: 0.9, B: 0.1},
    }

    decoded = run(Scripted(script=script), Beam(width=2), max_length=3)

    assert decoded.tokens.tolist() == [[[A, A, EOS], [EOS, PAD, PAD]]]
    torch.testing.assert_close(
        decoded.scores, torch.tensor([[0.7 * 0.9 * 0.9, 0.3]]).log(), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("max_length", [1, 2, 3])
def test_a_beam_wide_enough_equals_exhaustive_search(seed, max_length):
    decoder = HistoryDecoder(seed=seed)

    # At most 1 + 2 + 4 finished and 8 unfinished hypotheses exist at a time.
    decoded = run(decoder, Beam(width=15), max_length, items=3)

    for item in range(3):
        ranked = sorted(
            every_sequence(decoder, item, max_length).items(), key=lambda pair: -pair[1]
        )
        assert len(ranked) == 2 ** (max_length + 1) - 1
        for rank, (sequence, total) in enumerate(ranked):
            padded = [*sequence, *[PAD] * (max_length - len(sequence))]
            assert decoded.tokens[item, rank].tolist() == padded
            assert decoded.scores[item, rank].item() == pytest.approx(total, abs=1e-5)
        # Unused hypotheses have the score -inf.
        assert (decoded.scores[item, len(ranked) :] == -math.inf).all()


@pytest.mark.parametrize("width", [2, 3, 4])
def test_a_narrow_beam_equals_a_search_over_lists(width):
    decoder = HistoryDecoder(seed=1)

    decoded = run(decoder, Beam(width=width), max_length=5, items=4)

    for item in range(4):
        alive = [((), 0.0)]
        for _ in range(5):
            candidates = []
            for sequence, total in alive:
                if EOS in sequence:
                    candidates.append(((*sequence, PAD), total))
                    continue
                code = BOS
                for token in sequence:
                    code = code * 5 + token
                logprobs = decoder.logits(item, code).log_softmax(dim=-1)
                candidates += [((*sequence, y), total + logprobs[y].item()) for y in (EOS, A, B)]
            alive = sorted(candidates, key=lambda pair: -pair[1])[:width]
        for rank, (sequence, total) in enumerate(alive):
            tokens = decoded.tokens[item, rank].tolist()
            # The loop may stop early, when only padding is left.
            assert [*tokens, *[PAD] * (5 - len(tokens))] == list(sequence)
            assert decoded.scores[item, rank].item() == pytest.approx(total, abs=1e-5)


def test_a_reordered_state_follows_its_parent_within_its_item():
    # The second hypothesis overtakes the first: sequences that start with B are more probable.
    script = {
        (BOS,): {A: 0.55, B: 0.45},
        (BOS, A): {A: 0.5, B: 0.5},
        (BOS, B): {A: 0.9, B: 0.1},
        (BOS, B, A): {EOS: 1.0},
        (BOS, A, A): {B: 1.0},
        (BOS, A, B): {B: 1.0},
    }

    decoded = run(Scripted(script=script), Beam(width=2), max_length=3, items=2)

    for item in range(2):
        assert decoded.tokens[item].tolist()[0] == [B, A, EOS]
        assert decoded.tokens[item].tolist()[1] in ([A, A, B], [A, B, B])
        torch.testing.assert_close(
            decoded.scores[item], torch.tensor([0.45 * 0.9, 0.55 * 0.5]).log(), rtol=0, atol=1e-6
        )


def test_a_state_is_reordered_and_repeated_row_by_row():
    state = State({"h": torch.tensor([[1.0], [2], [3]])}, {"keys": torch.tensor([[4.0], [5], [6]])})

    reordered = state.reorder(torch.tensor([2, 0, 0]))
    repeated = state.repeat(2)

    assert reordered.per_hypothesis["h"].flatten().tolist() == [3, 1, 1]
    assert reordered.per_source is state.per_source
    assert repeated.per_hypothesis["h"].flatten().tolist() == [1, 1, 2, 2, 3, 3]
    assert repeated.per_source["keys"].flatten().tolist() == [4, 4, 5, 5, 6, 6]


def test_samples_depend_on_the_generator_only():
    first, again, other = (
        run(HistoryDecoder(), Multinomial(), max_length=8, items=6, seed=seed) for seed in (1, 1, 2)
    )

    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.scores, again.scores)
    assert first.tokens.tolist() != other.tokens.tolist()


def test_outputs_have_no_gradient():
    decoder = Weighted()
    logits, _ = decoder.step(torch.tensor([[BOS]]), decoder.start(memory(), steps=2))
    assert logits.requires_grad

    assert not run(decoder, Best(), max_length=2).scores.requires_grad
