"""Accelerations on a GPU that is not the current one."""

import pytest
import torch

import zoo
from zoo.acceleration.current_device import is_other_device


def test_the_cpu_and_the_current_gpu_are_not_other_devices():
    assert not is_other_device(torch.device("cpu"))
    assert not is_other_device(torch.device("cuda"))


@pytest.mark.gpu
def test_only_the_current_gpu_is_not_another_one():
    current = torch.cuda.current_device()
    assert not is_other_device(torch.device("cuda", current))
    assert is_other_device(torch.device("cuda", current + 1))


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are fewer than two GPUs")
@pytest.mark.parametrize("spec", ["gpt2-tiny", "bahdanau-reversal", "transformer-tiny"])
def test_outputs_and_tokens_on_a_second_gpu_are_those_of_the_cpu(spec):
    plain = zoo.compose(spec, seed=0).eval()
    model = zoo.accelerate(zoo.compose(spec, seed=0).eval().to("cuda:1"))
    batch = plain.example(2, 5, torch.Generator().manual_seed(0))
    on_gpu = {name: tensor.to("cuda:1") for name, tensor in batch.items()}
    prompts = [[3, 4, 5], [4, 3]]
    for _ in range(4):  # the last ones are captured
        with torch.no_grad():
            logits = model(on_gpu).logits.cpu()
        torch.testing.assert_close(logits, plain(batch).logits, atol=1e-4, rtol=1e-4)
        found = zoo.generate(model, prompts, max_length=8)
        assert found == zoo.generate(plain, prompts, max_length=8)
    assert torch.cuda.current_device() == 0
