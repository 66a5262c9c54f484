"""Combined conditions of sampling."""

import pytest
import torch

from zoo import ZooError
from zoo.plugin import Blueprint
from zoo_sampling.combined import CombinedSampler
from zoo_sampling.greedy import Greedy
from zoo_sampling.top_k import TopK
from zoo_sampling.top_p import TopP


def test_the_second_condition_gets_what_the_first_one_keeps():
    logprobs = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    # Of the first two tokens, the first has 4 / 7 of the probability: more than 0.5.
    sampler = CombinedSampler(samplers=[Blueprint.of(TopK, k=2), Blueprint.of(TopP, p=0.5)])
    assert sampler.distribution(logprobs).tolist() == [[1.0, 0.0, 0.0, 0.0]]
    assert TopP(p=0.5).distribution(logprobs).count_nonzero() == 2


@pytest.mark.parametrize(
    ("parts", "reason"),
    [([], "samplers is empty"), ([Blueprint.of(Greedy)], "'greedy' has no distribution")],
)
def test_invalid_parts_are_rejected(parts, reason):
    with pytest.raises(ZooError, match=reason):
        CombinedSampler(samplers=parts)
