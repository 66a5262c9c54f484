import pytest
import torch
from transformers.generation import RepetitionPenaltyLogitsProcessor

from zoo import ZooError, load_spec
from zoo.errors import SpecError
from zoo_sampling.repetition_penalty import RepetitionPenalty


def test_positive_scores_are_divided_and_negative_scores_multiplied():
    logits = torch.tensor([[[2.0, -2.0, 3.0, -3.0]]])

    penalized = RepetitionPenalty(penalty=2.0)(logits, torch.tensor([[[0, 1, 1, 0]]]))

    assert penalized.tolist() == [[[1.0, -4.0, 3.0, -3.0]]]


@pytest.mark.parametrize("penalty", [1.0, 1.2, 5.0])
def test_scores_equal_transformers(penalty):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(6, 4, 9, generator=generator)
    scores[0, 0, 3] = -torch.inf
    tokens = torch.randint(0, 9, (6, 4, 5), generator=generator)

    expected = RepetitionPenaltyLogitsProcessor(penalty)(tokens.flatten(0, 1), scores.flatten(0, 1))

    assert torch.equal(RepetitionPenalty(penalty=penalty)(scores, tokens).flatten(0, 1), expected)


@pytest.mark.parametrize("penalty", [0.0, -1.0, 0.5])
def test_penalty_must_be_at_least_one(penalty):
    with pytest.raises(ZooError, match=f"penalty is {penalty};"):
        RepetitionPenalty(penalty=penalty)
    override = f"filters=[{{type: repetition-penalty, penalty: {penalty}}}]"
    with pytest.raises(SpecError, match=r"filters.*\.penalty: is .* should be"):
        load_spec("bahdanau-reversal", overrides=[override])
