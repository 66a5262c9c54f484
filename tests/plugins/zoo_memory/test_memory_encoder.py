"""Controllers of NTM and DNC: known values, steps of the papers, and parameter names."""

import math

import pytest
import torch

from zoo_memory.dnc import DNC
from zoo_memory.ntm import NTM

FEED_FORWARD = {"controller.weight", "controller.bias"}
LSTM = {"controller.weight_ih", "controller.weight_hh", "controller.bias_ih", "controller.bias_hh"}
OFF, ON = -100.0, 100.0

both_encoders = pytest.mark.parametrize("encoder_class", [NTM, DNC])


def _encoder(encoder_class, controller):
    torch.manual_seed(0)
    return encoder_class(
        input_dim=3, hidden=4, slots=5, width=2, read_heads=2, controller=controller
    )


@torch.no_grad()
def test_known_values_of_a_feed_forward_controller():
    """All heads stay at the first location, where each step writes tanh(h)."""
    ntm = NTM(input_dim=1, hidden=1, slots=3, width=1, controller="feed-forward")
    ntm.controller.weight.copy_(torch.tensor([[1.0, 2.0]]))
    ntm.controller.bias.fill_(0.5)
    head = [0.0, 0.0, OFF, ON, OFF, ON, OFF]  # key, strength, gate, sharpness, shift weights
    ntm.say.bias.copy_(torch.tensor([*head, *head, ON, 0.0]))  # erase, add
    ntm.say.weight.zero_()[-1] = 1
    inputs = [0.3, -1.0, 0.2]
    states = ntm(torch.tensor(inputs)[None, :, None], torch.ones(1, 3, dtype=torch.bool)).states
    read = 0.0
    for t, x in enumerate(inputs):
        h = math.tanh(x + 2 * read + 0.5)
        read = math.tanh(h)
        torch.testing.assert_close(states[0, t], torch.tensor([h, read]))


@both_encoders
@torch.no_grad()
def test_feed_forward_steps_match_the_equation(encoder_class):
    encoder = _encoder(encoder_class, "feed-forward")
    inputs = torch.randn(2, 4, 3)
    found = encoder(inputs, torch.ones(2, 4, dtype=torch.bool))
    W, b = encoder.controller.weight, encoder.controller.bias
    memory, read = encoder.initial_memory(inputs), torch.zeros(2, 4)
    for t in range(4):
        h = torch.tanh(torch.cat([inputs[:, t], read], dim=1) @ W.T + b)
        read, memory = encoder.memory_step(encoder.say(h), memory)
        torch.testing.assert_close(found.states[:, t], torch.cat([h, read], dim=1))
    torch.testing.assert_close(found.summary, found.states[:, -1])


@both_encoders
@pytest.mark.parametrize(("controller", "is_recurrent"), [("lstm", True), ("feed-forward", False)])
@torch.no_grad()
def test_only_the_lstm_depends_on_previous_inputs_without_writes(
    encoder_class, controller, is_recurrent
):
    """With an interface vector of zeros, nothing is added to the memory."""
    encoder = _encoder(encoder_class, controller)
    encoder.say.weight.zero_()
    encoder.say.bias.zero_()
    inputs, mask = torch.randn(2, 4, 3), torch.ones(2, 4, dtype=torch.bool)
    reversed_states = encoder(inputs.flip(1), mask).states.flip(1)
    is_same = torch.allclose(encoder(inputs, mask).states, reversed_states, atol=1e-5)
    assert is_same is not is_recurrent


@both_encoders
@pytest.mark.parametrize(("controller", "names"), [("lstm", LSTM), ("feed-forward", FEED_FORWARD)])
def test_parameter_names(encoder_class, controller, names):
    parameters = dict(_encoder(encoder_class, controller).named_parameters())
    assert set(parameters) == names | {"say.weight", "say.bias"}


@both_encoders
def test_the_controller_is_an_lstm_by_default(encoder_class):
    assert isinstance(encoder_class(input_dim=3).controller, torch.nn.LSTMCell)
