"""Training in bfloat16: the backward pass is outside of autocast, as in `zoo train`."""

import pytest
import torch

import zoo
from zoo.training.local_step import LossModule

LARGE = ["bahdanau-2015", "luong-2015"]  # the first has cells 'gru-cho', unlike the small specs
NAMES = [
    "bert-tiny",
    "cbow-tiny",
    "ctc-attention-tiny",
    "deepspeech-ctc-tiny",
    "dnc-tiny",
    "draw-tiny",
    "dynamic-memory-tiny",
    "elmo-tiny",
    "g2p-en",
    "gat-tiny",
    "gatv2-tiny",
    "gpt2-tiny",
    "graph-transformer-tiny",
    "hierarchical-tiny",
    "llama-tiny",
    "memory-network-tiny",
    "minilm-tiny",
    "ntm-tiny",
    "show-attend-tell-soft-tiny",
    "skip-gram-tiny",
    "tagger-small",
    "transformer-tiny",
    "video-tiny",
    "vit-tiny",
    "wav2vec2-tiny",
]


def loss_and_gradients(module, batch, parameters, enabled=True):
    torch.manual_seed(1)
    device = next(iter(batch.values())).device.type
    with torch.autocast(device, torch.bfloat16, enabled=enabled):
        loss = module(batch)
    gradients = torch.autograd.grad(loss, parameters, materialize_grads=True, allow_unused=True)
    return loss, torch.cat([gradient.flatten().float() for gradient in gradients])


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *((name, "cpu") for name in NAMES),
        *(pytest.param(name, "cuda", marks=pytest.mark.gpu) for name in LARGE + NAMES),
    ],
)
def test_gradients_are_as_near_to_float32_as_those_of_the_reference_path(name, device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    torch.manual_seed(0)
    model = zoo.compose(name).to(device).train()
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    batch = model.example(4, 6, torch.Generator().manual_seed(0))
    batch = {key: value.to(device) for key, value in batch.items()}
    module = LossModule(model, zoo.objective(name).to(device))
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    loss, gradient = loss_and_gradients(module, batch, parameters, enabled=False)
    _, reference = loss_and_gradients(module, batch, parameters)
    found, accelerated = loss_and_gradients(zoo.accelerate(module), batch, parameters)
    torch.testing.assert_close(found.float(), loss, rtol=2e-2, atol=2e-2)
    error, expected = (accelerated - gradient).norm(), (reference - gradient).norm()
    assert error <= 1.5 * expected + 0.01 * gradient.norm()
