"""A small language model whose steps run in kernels, and the comparison of its outputs."""

import copy

import torch

import zoo
from zoo.plugin import DecodeRequest, decode

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VOCAB = 23


def language_model(layers=1, **decoder):
    """Return a model with random weights in evaluation mode, given options of its decoder."""
    attention = {"scorer": "scaled-dot", "align": "soft", "heads": 2, "kv_heads": 1, "head_dim": 32}
    decoder = {"type": "transformer", "layers": layers, "attention": attention, **decoder}
    decoder["feed_forward"] = {"hidden": 48}
    embedding = {"type": "token", "vocab": VOCAB, "dim": 64}
    spec = {"type": "language-model", "embedding": embedding, "decoder": decoder}
    torch.manual_seed(0)
    model = zoo.compose({"zoo": 1, "name": "test", "model": spec}).eval()
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.to(DEVICE)


def make_request(sampler, filters=(), max_length=6, seed=None):
    generator = None if seed is None else torch.Generator(DEVICE).manual_seed(seed)
    options = {"sampler": sampler, "filters": filters, "generator": generator}
    return DecodeRequest(max_length=max_length, **options)


def assert_same_outputs(model, make_inputs, request):
    """Compare the outputs of a model, given functions that return the inputs and the request, with
    those of the reference path, and return them."""
    expected = decode(make_inputs(model), request())
    found = decode(make_inputs(zoo.accelerate(copy.deepcopy(model))), request())
    assert torch.equal(found.tokens, expected.tokens)
    torch.testing.assert_close(found.scores, expected.scores, atol=1e-4, rtol=1e-4)
    return found
