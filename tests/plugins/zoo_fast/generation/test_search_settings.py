"""Settings of searches: what shares captured steps."""

import torch

import zoo
from zoo.generation.prompts import PromptBatch
from zoo.plugin import DecodeRequest
from zoo_fast.generation.search_settings import parameters_of, settings_of
from zoo_sampling.beam import Beam
from zoo_sampling.greedy import Greedy
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.top_k import TopK


def test_components_with_the_same_parameters_share_a_key():
    assert parameters_of(Beam(width=3)) == parameters_of(Beam(width=3))
    assert parameters_of(Beam(width=3)) != parameters_of(Beam(width=4))
    assert parameters_of(Greedy()) != parameters_of(Beam())
    fast, again = (zoo.accelerate(TopK(k=3)) for _ in range(2))
    assert parameters_of(fast) == parameters_of(again) != parameters_of(TopK(k=3))


def make_settings(sampler, penalty=1.2, eos_ids=(2,)):
    prompts = PromptBatch(torch.ones(1, 1), torch.ones(1, 0), torch.zeros(1), eos_ids, 0, 5)
    filters = [RepetitionPenalty(penalty=penalty)]
    return settings_of(DecodeRequest(sampler=sampler, max_length=5, filters=filters), prompts)


def test_settings_are_equal_if_all_parameters_are():
    settings = make_settings(Greedy())
    assert settings == make_settings(Greedy())
    assert hash(settings) == hash(make_settings(Greedy()))
    assert settings != make_settings(Beam())
    assert settings != make_settings(Greedy(), penalty=1.3)
    assert settings != make_settings(Greedy(), eos_ids=(2, 3))
