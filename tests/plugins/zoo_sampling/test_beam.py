import math

import pytest
import torch

from zoo import ZooError
from zoo.plugin import Decoder, Memory, State, decode
from zoo_sampling.beam import Beam

PAD, EOS, BOS, A, B = range(5)


class ScriptedDecoder(Decoder):
    """Next tokens' probabilities by the tokens so far, written out; then only A."""

    name = "scripted"

    def __init__(self, *, script):
        super().__init__()
        self.script = script

    def start(self, memory: Memory, *, steps: int) -> State:
        return State({"said": torch.zeros(memory.states.shape[0], 0, dtype=torch.long)})

    def step(self, tokens, state):
        tokens_so_far = torch.cat([state.per_hypothesis["said"], tokens], dim=1)
        logits = torch.full((len(tokens_so_far), 1, 5), -math.inf)
        for row, history in enumerate(tokens_so_far.tolist()):
            for token, p in self.script.get(tuple(history[1:]), {A: 1.0}).items():
                logits[row, 0, token] = math.log(p)
        return logits, state.updated({"said": tokens_so_far})


SCRIPT = {
    (): {EOS: 0.4, A: 0.6},
    (A,): {A: 0.5, B: 0.3, EOS: 0.2},
    (A, A): {EOS: 1.0},
    (A, B): {EOS: 1.0},
}


def run(max_length=3, script=SCRIPT, **parameters):
    return decode(
        ScriptedDecoder(script=script),
        Memory.empty(1),
        Beam(**parameters),
        bos=BOS,
        eos=EOS,
        pad=PAD,
        max_length=max_length,
    )


def test_scores_are_divided_by_a_power_of_the_length():
    decoded = run(width=2, length_penalty=2.0)

    # log 0.3 / 9 beats log 0.18 / 9 and log 0.4 / 1.
    assert decoded.tokens.tolist() == [[[A, A, EOS], [A, B, EOS]]]
    torch.testing.assert_close(
        decoded.scores, torch.tensor([[math.log(0.3) / 9, math.log(0.18) / 9]])
    )


def test_without_a_length_penalty_the_likeliest_is_best():
    decoded = run(width=2, length_penalty=0.0)

    assert decoded.tokens.tolist() == [[[EOS, PAD, PAD], [A, A, EOS]]]
    torch.testing.assert_close(decoded.scores, torch.tensor([[0.4, 0.3]]).log())


def test_early_stopping_takes_the_first_that_end():
    # "EOS" and "A EOS" end first; "A A EOS" would beat the former at log 0.18 / 9.
    script = {(): {EOS: 0.4, A: 0.6}, (A,): {EOS: 0.5, A: 0.3, B: 0.2}, (A, A): {EOS: 1.0}}

    hasty, patient = (
        run(width=2, length_penalty=2.0, early_stopping=early, script=script)
        for early in (True, False)
    )

    assert hasty.tokens.tolist() == [[[A, EOS], [EOS, PAD]]]
    assert patient.tokens[0, 0].tolist() == [A, A, EOS]


def test_what_has_not_ended_counts_at_max_length():
    assert run(max_length=1, width=2, length_penalty=0.0).tokens.tolist() == [[[A], [EOS]]]


def test_places_that_nothing_fills_have_no_score():
    decoded = run(width=5, length_penalty=0.0)

    assert decoded.tokens.shape == (1, 5, 3)
    assert decoded.tokens[0, 0].tolist() == [EOS, PAD, PAD]
    assert (decoded.scores[0, -1:] == -math.inf).all()
    assert (decoded.tokens[0][decoded.scores[0] == -math.inf] == PAD).all()


def test_a_choice_is_the_best_of_all_continuations():
    logprobs = torch.tensor([[[0.6, 0.4], [0.9, 0.1]]]).log()
    scores = torch.tensor([[0.5, 0.4]]).log()

    chosen = Beam(width=2).select(logprobs, scores)

    assert chosen.tokens.tolist() == [[0, 0]]
    assert chosen.parents.tolist() == [[1, 0]]
    torch.testing.assert_close(chosen.scores, torch.tensor([[0.36, 0.3]]).log())


@pytest.mark.parametrize("n_best", [0, 5])
def test_no_more_than_were_followed_are_returned(n_best):
    with pytest.raises(ZooError, match=rf"n_best \({n_best}\) must be from 1 to width \(4\)"):
        Beam(n_best=n_best)


def test_a_beam_of_none():
    with pytest.raises(ZooError, match="width is 0; it must be at least 1"):
        Beam(width=0)
