"""The selection of the first tokens in the pass of the prompts."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from zoo import ZooError
from zoo.generation.loop import DecodingLoop
from zoo.generation.prompts import build_prompts
from zoo.plugin import DecodeRequest, Filter, GenerationInputs, Memory
from zoo.testing.tiny import TinyDecoder, TinyEmbedding
from zoo_fast.generation.fast_loop import FastLoop
from zoo_fast.generation.prompt_pass import PromptPass, _select_first, selects_first
from zoo_fast.generation.search_settings import settings_of
from zoo_fast.sampling import greedy
from zoo_sampling.beam import Beam
from zoo_sampling.diverse_beam import DiverseBeam
from zoo_sampling.greedy import Greedy
from zoo_sampling.repetition_penalty import RepetitionPenalty
from zoo_sampling.top_k import TopK

SAMPLERS = [Greedy(), Beam(width=3), DiverseBeam(width=4, groups=2)]
PROMPTS = {
    "none": None,
    "equal": torch.tensor([[1, 3, 4], [1, 5, 5]]),
    "ragged": torch.tensor([[1, 3, 4], [1, 5, 0]]),
}
COPYING = ("aten._local_scalar_dense", "aten.nonzero", "aten.lift_fresh")


def make_loop(sampler, prompt=None, filters=(), eos=(2, 6)):
    torch.manual_seed(0)
    decoder = TinyDecoder(embedding=TinyEmbedding(), summary_dim=4).eval()
    torch.nn.init.normal_(decoder.out.weight, std=2.0)
    memory = Memory(torch.ones(2, 1, 4), torch.ones(2, 1, dtype=torch.bool), torch.randn(2, 4))
    inputs = GenerationInputs(decoder, memory, bos=1, eos=eos, pad=0, prompt=prompt)
    request = DecodeRequest(sampler=sampler, max_length=5, filters=filters)
    prompts = build_prompts(inputs, 5)
    return DecodingLoop(decoder=decoder, memory=memory, prompts=prompts, request=request)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
@torch.no_grad()
def test_the_state_equals_that_of_the_reference(sampler, prompt, monkeypatch):
    filters = [RepetitionPenalty(penalty=1.5)] if sampler.width == 1 else []
    plain = make_loop(sampler, PROMPTS[prompt], filters)
    expected, fast = plain.first(), FastLoop(plain)
    monkeypatch.delattr(PromptPass, "logits")  # the selection is that of the pass
    found = fast.first()

    for name in ("tokens", "finished", "num_generated"):
        assert torch.equal(getattr(found.search, name), getattr(expected.search, name)), name
    assert found.search.cur_len == expected.search.cur_len
    assert torch.equal(found.search.task.eos_ids, expected.search.task.eos_ids)
    torch.testing.assert_close(found.search.scores, expected.search.scores)
    torch.testing.assert_close(found.search.sampler_state, expected.search.sampler_state)
    torch.testing.assert_close(found.state.per_hypothesis, expected.state.per_hypothesis)
    assert bool(found.invalid) is bool(expected.invalid) is False


@torch.no_grad()
def test_prompts_are_validated_before_the_selection():
    prompt = torch.tensor([[1, 3, 6], [1, 5, 5]])
    loop = make_loop(Greedy(), prompt, [RepetitionPenalty(penalty=1.5)], eos=(2,))
    loop.decoder.out = torch.nn.Linear(loop.decoder.out.in_features, 5)  # as a smaller vocabulary
    with pytest.raises(ZooError, match="prompt contains token 6, out of range"):
        FastLoop(loop).first()


@torch.no_grad()
def test_the_end_tokens_are_copied_with_the_other_tensors():
    fast = FastLoop(make_loop(Greedy()))
    inputs = fast._prompt_pass()
    settings = settings_of(fast.request, fast.prompts)
    tensors, (_, task) = inputs._call(_select_first, settings, fast.prompts.total_length)
    assert tensors["eos_ids"].tolist() == [2, 6]
    assert not task.eos_ids.numel()  # the next pass may overwrite what is not among the tensors


@torch.no_grad()
def test_a_logit_that_is_nan_is_found():
    fast = FastLoop(make_loop(Greedy()))
    fast.decoder.out.weight[3] = float("nan")
    assert bool(fast.first().invalid)


class Copies(TorchDispatchMode):
    """Collect operations that a CUDA graph cannot contain: copies from and to the host."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if str(func).startswith(COPYING):
            self.found.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
@torch.no_grad()
def test_the_pass_copies_nothing_from_or_to_the_host(sampler, monkeypatch):
    monkeypatch.setattr(greedy, "_step_on_cpu", lambda *_: None)  # it is not used on a GPU
    loop = FastLoop(make_loop(sampler, PROMPTS["ragged"]))
    with Copies() as copies:
        loop.first()
    assert not copies.found


class Unknown(Filter):
    """A filter of a class that is not known."""

    name = "unknown"

    def forward(self, logprobs, tokens):
        return logprobs


def test_random_samplers_and_unknown_filters_select_after_the_pass():
    assert selects_first(make_loop(Greedy()).request)
    assert not selects_first(make_loop(TopK(k=3)).request)
    assert not selects_first(make_loop(Greedy(), filters=[Unknown()]).request)
