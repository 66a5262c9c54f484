"""Settings of searches: what shares captured steps."""

from dataclasses import replace

import torch

import zoo
from zoo.acceleration import is_accelerated
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
    prompts = PromptBatch(torch.ones(1, 1), torch.ones(1, 0), torch.zeros(1), eos_ids, 0, 5, False)
    filters = [RepetitionPenalty(penalty=penalty)]
    return settings_of(DecodeRequest(sampler=sampler, max_length=5, filters=filters), prompts)


def test_settings_are_equal_if_all_parameters_are():
    settings = make_settings(Greedy())
    assert settings == make_settings(Greedy())
    assert hash(settings) == hash(make_settings(Greedy()))
    assert settings != make_settings(Beam())
    assert settings != make_settings(Greedy(), penalty=1.3)
    assert settings != make_settings(Greedy(), eos_ids=(2, 3))
    assert settings != replace(settings, selects_pad=True)


def test_settings_keep_neither_the_generator_nor_parts_that_can_change():
    penalty, generator = RepetitionPenalty(penalty=1.2), torch.Generator()
    prompts = PromptBatch(torch.ones(1, 1), torch.ones(1, 0), torch.zeros(1), (2,), 0, 5, False)
    sampler = zoo.accelerate(TopK(k=3))
    request = DecodeRequest(sampler=sampler, max_length=5, filters=[penalty], generator=generator)
    settings = settings_of(request, prompts)
    penalty.penalty, sampler.k = 50.0, 1
    assert settings.request.filters[0].penalty == 1.2
    assert settings.request.sampler.k == 3
    assert is_accelerated(settings.request.sampler)
    assert settings.request.generator is None
    assert settings != settings_of(request, prompts)


def test_a_component_without_a_hash_is_its_own_key():
    sampler = Greedy()
    sampler.extra = []
    prompts = PromptBatch(torch.ones(1, 1), torch.ones(1, 0), torch.zeros(1), (2,), 0, 5, False)
    settings = settings_of(DecodeRequest(sampler=sampler, max_length=5), prompts)
    assert settings.request.sampler is sampler
    assert settings.components == (sampler,)
