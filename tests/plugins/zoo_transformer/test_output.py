import pytest
import torch
import torch.nn.functional as F

from zoo import ZooError
from zoo.plugin import Blueprint
from zoo_tokens.token import Token
from zoo_transformer.output import Output
from zoo_transformer.output_transform import OutputTransform
from zoo_vision.patches import Patches


def token() -> Token:
    torch.manual_seed(0)
    return Token(vocab=3, dim=2)


def test_tied_logits_have_known_values():
    embedding = token()
    embedding.load_state_dict({"table.weight": torch.tensor([[0.0, 0], [1, 2], [-3, 1]])})
    output = Output(embedding=embedding, tied=True, bias=True, scale=0.5)
    with torch.no_grad():
        output.bias.copy_(torch.tensor([0.25, 0.0, 1.0]))

    logits = output(torch.tensor([[[4.0, 2.0]]]))

    # the scaled state is (2, 1)
    assert logits.tolist() == [[[0.25, 2 + 2, -6 + 1 + 1]]]


def test_an_untied_output_matches_torch_linear():
    output = Output(embedding=token(), bias=True, scale=2.0)
    with torch.no_grad():
        output.bias.normal_()
    states = torch.randn(2, 4, 2)

    expected = F.linear(2 * states, output.map.weight, output.bias)
    torch.testing.assert_close(output(states), expected, rtol=0, atol=1e-6)


def test_a_layer_before_the_logits_is_that_of_torch():
    transform = Blueprint.of(OutputTransform, activation="relu", eps=0.1)
    output = Output(embedding=token(), tied=True, bias=True, transform=transform)
    states = torch.randn(2, 4, 2)
    hidden = F.relu(F.linear(states, output.transform.map.weight, output.transform.map.bias))
    normed = F.layer_norm(hidden, (2,), eps=0.1)
    expected = F.linear(normed, output.embedding.table.weight, output.bias)
    torch.testing.assert_close(output(states), expected)
    names = {name for name, _ in output.transform.named_parameters()}
    assert names == {"map.weight", "map.bias", "norm.weight", "norm.bias"}


def test_a_tied_output_has_gradients_for_the_embedding_table():
    embedding = token()

    Output(embedding=embedding, tied=True)(torch.ones(1, 1, 2)).sum().backward()

    assert embedding.table.weight.grad.abs().sum() > 0


def test_an_embedding_without_a_vocabulary_raises():
    with pytest.raises(
        ZooError,
        match=r"^embedding 'patches' is not a token embedding and has no vocabulary$",
    ):
        Output(embedding=Patches(size=2, dim=4))


def test_state_dict_keys():
    def names(**form: bool) -> list[str]:
        return list(Output(embedding=token(), **form).state_dict())

    assert names() == ["map.weight"]
    assert names(bias=True) == ["bias", "map.weight"]
    assert names(tied=True) == ["embedding.table.weight"]


@pytest.mark.parametrize("tied", [False, True])
def test_a_cap_limits_the_logits(tied):
    embedding, states = token(), torch.randn(2, 4, 2)
    plain = Output(embedding=embedding, tied=tied)
    capped = Output(embedding=embedding, tied=tied, cap=0.5)
    capped.load_state_dict(plain.state_dict())
    torch.testing.assert_close(capped(states), 0.5 * torch.tanh(plain(states) / 0.5))
