import math
from pathlib import Path

import pytest
import torch

import zoo
from zoo import ZooError
from zoo.plugin import Decoder, DecodeRequest, GenerationInputs, Memory, State, decode
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam

PAD, EOS, BOS, A, B = range(5)


class ScriptedDecoder(Decoder):
    """Next-token probabilities given by a table over the tokens so far; A elsewhere."""

    name = "scripted"

    def __init__(self, *, script):
        super().__init__()
        self.script = script

    def start(self, memory: Memory, *, steps: int) -> State:
        return State({"tokens": torch.zeros(memory.states.shape[0], 0, dtype=torch.long)})

    def step(self, tokens, state):
        tokens_so_far = torch.cat([state.per_hypothesis["tokens"], tokens], dim=1)
        logits = torch.full((len(tokens_so_far), 1, 5), -math.inf)
        for row, history in enumerate(tokens_so_far.tolist()):
            for token, p in self.script.get(tuple(history[1:]), {A: 1.0}).items():
                logits[row, 0, token] = math.log(p)
        return logits, state.updated({"tokens": tokens_so_far})


SCRIPT = {
    (): {EOS: 0.4, A: 0.6},
    (A,): {A: 0.5, B: 0.3, EOS: 0.2},
    (A, A): {EOS: 1.0},
    (A, B): {EOS: 1.0},
}


def run(max_length=3, script=SCRIPT, **parameters):
    decoder = ScriptedDecoder(script=script)
    return decode(
        GenerationInputs(decoder, Memory.empty(1), bos=BOS, eos=EOS, pad=PAD),
        DecodeRequest(sampler=Beam(**parameters), max_length=max_length),
    )


def test_scores_are_divided_by_a_power_of_the_length():
    decoded = run(width=2, length_penalty=2.0)

    # log 0.3 / 9 is larger than log 0.18 / 9 and log 0.4 / 1.
    assert decoded.tokens.tolist() == [[[A, A, EOS], [A, B, EOS]]]
    torch.testing.assert_close(
        decoded.scores, torch.tensor([[math.log(0.3) / 9, math.log(0.18) / 9]])
    )


def test_without_a_length_penalty_the_most_probable_is_best():
    decoded = run(width=2, length_penalty=0.0)

    assert decoded.tokens.tolist() == [[[EOS, PAD, PAD], [A, A, EOS]]]
    torch.testing.assert_close(decoded.scores, torch.tensor([[0.4, 0.3]]).log())


def test_the_default_is_the_most_probable_as_in_the_paper():
    assert torch.equal(run(width=2).scores, run(width=2, length_penalty=0.0).scores)


def test_gnmt_divides_by_a_power_of_five_plus_length_over_six():
    decoded = run(width=2, length_penalty=0.6, length_norm="gnmt")

    # ((5 + 1) / 6) ** 0.6 is 1, ((5 + 3) / 6) ** 0.6 is 1.188: log 0.4 is larger than
    # log 0.3 / 1.188, with alpha 1 log 0.3 / (8 / 6) is larger.
    assert decoded.tokens.tolist() == [[[EOS, PAD, PAD], [A, A, EOS]]]
    expected = torch.tensor([[math.log(0.4), math.log(0.3) / (8 / 6) ** 0.6]])
    torch.testing.assert_close(decoded.scores, expected)
    other = run(width=2, length_penalty=1.0, length_norm="gnmt")
    assert other.tokens[0, 0].tolist() == [A, A, EOS]


@pytest.mark.parametrize("early_stopping", [False, "never"])
@pytest.mark.parametrize("length_penalty", [0.2, 0.6, 1.0])
def test_gnmt_equals_an_exhaustive_search(length_penalty, early_stopping):
    script = {
        (): {EOS: 0.25, A: 0.4, B: 0.35},
        (A,): {EOS: 0.45, A: 0.3, B: 0.25},
        (B,): {EOS: 0.1, A: 0.2, B: 0.7},
    }
    script |= {(x, y): {EOS: 1.0} for x in (A, B) for y in (A, B)}
    finished = []
    for x, p in script[()].items():
        for y, q in script.get((x,), {None: 1.0}).items():
            sequence = [x] if x == EOS else [x, EOS] if y == EOS else [x, y, EOS]
            penalty = (5 + len(sequence)) ** length_penalty / (5 + 1) ** length_penalty
            finished.append((math.log(p * q) / penalty, sequence))
    finished.sort(reverse=True)

    decoded = run(
        width=5,
        length_penalty=length_penalty,
        length_norm="gnmt",
        early_stopping=early_stopping,
        script=script,
        max_length=4,
    )

    rows = [[t for t in row if t != PAD] for row in decoded.tokens[0].tolist()]
    assert rows == [sequence for _, sequence in finished[:5]]
    torch.testing.assert_close(decoded.scores[0], torch.tensor([s for s, _ in finished[:5]]))


def test_early_stopping_returns_the_first_finished_hypotheses():
    # "EOS" and "A EOS" end first; "A A EOS" has a better score, log 0.18 / 9.
    script = {(): {EOS: 0.4, A: 0.6}, (A,): {EOS: 0.5, A: 0.3, B: 0.2}, (A, A): {EOS: 1.0}}

    early, late = (
        run(width=2, length_penalty=2.0, early_stopping=early_stopping, script=script)
        for early_stopping in (True, False)
    )

    assert early.tokens.tolist() == [[[A, EOS], [EOS, PAD]]]
    assert late.tokens[0, 0].tolist() == [A, A, EOS]


def test_unfinished_hypotheses_count_at_max_length():
    assert run(max_length=1, width=2, length_penalty=0.0).tokens.tolist() == [[[A], [EOS]]]


def test_unused_hypotheses_are_padding_with_score_minus_inf():
    decoded = run(width=5, length_penalty=0.0)

    assert decoded.tokens.shape == (1, 5, 3)
    assert decoded.tokens[0, 0].tolist() == [EOS, PAD, PAD]
    assert (decoded.scores[0, -1:] == -math.inf).all()
    assert (decoded.tokens[0][decoded.scores[0] == -math.inf] == PAD).all()


def test_select_returns_the_best_of_all_continuations():
    logprobs = torch.tensor([[[0.6, 0.4], [0.9, 0.1]]]).log()
    scores = torch.tensor([[0.5, 0.4]]).log()

    selection = Beam(width=2).select(logprobs, scores)

    assert selection.tokens.tolist() == [[0, 0]]
    assert selection.parents.tolist() == [[1, 0]]
    torch.testing.assert_close(selection.scores, torch.tensor([[0.36, 0.3]]).log())


@pytest.mark.parametrize("n_best", [0, 5])
def test_n_best_must_not_exceed_width(n_best):
    with pytest.raises(ZooError, match=rf"n_best \({n_best}\).*width \(4\)"):
        Beam(n_best=n_best)


@pytest.mark.parametrize("cls", [Beam, DiverseBeam])
def test_migration_keeps_the_length_penalty_of_version_1(cls):
    params, _ = cls.migrate(1, {"width": 2}, {})

    assert params == {"width": 2, "length_penalty": 1.0}
    assert cls.migrate(1, {"length_penalty": 0.5}, {})[0] == {"length_penalty": 0.5}


@pytest.mark.filterwarnings("ignore::zoo.errors.ZooWarning")
def test_an_older_artifact_decodes_as_before():
    path = Path(__file__).parents[2] / "recorded" / "artifacts" / "ctc-attention-tiny.safetensors"

    sampler = zoo.load_spec(zoo.load(path).spec).sections.sampler.build()

    assert sampler.config.length_penalty == 1.0
    assert sampler.config.length_norm == "power"


@pytest.mark.parametrize(
    ("name", "width", "length_penalty", "length_norm"),
    [
        ("transformer-base", 4, 0.6, "gnmt"),  # Vaswani et al. 2017, section 6.1
        ("transformer-big", 4, 0.6, "gnmt"),
        ("sutskever-2014", 12, 0.0, "power"),  # Sutskever et al. 2014, table 1
        ("bahdanau-2015", 12, 0.0, "power"),
        ("luong-2015", 10, 0.0, "power"),
        ("show-attend-tell-soft", 5, 0.0, "power"),
        ("video-2015", 5, 0.0, "power"),
    ],
)
def test_published_specs_search_as_their_papers(name, width, length_penalty, length_norm):
    sampler = zoo.load_spec(name).sections.sampler.build()

    assert isinstance(sampler, Beam)
    assert (sampler.width, sampler.n_best) == (width, 1)
    assert sampler.config.length_penalty == length_penalty
    assert sampler.config.length_norm == length_norm


def test_width_must_be_positive():
    with pytest.raises(ZooError, match="width is 0"):
        Beam(width=0)
