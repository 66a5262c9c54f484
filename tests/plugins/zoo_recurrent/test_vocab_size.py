import pytest
import torch
from torch import Tensor

from zoo import ZooError
from zoo.plugin import Embedding
from zoo_recurrent.vocab_size import vocabulary
from zoo_tokens.token import Token


class Continuous(Embedding):
    """Vectors as they are."""

    name = "continuous"
    dim = 3

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs

    def mask(self, inputs: Tensor) -> Tensor:
        return torch.ones(inputs.shape[:2], dtype=torch.bool)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        return torch.randn(batch, length, 3, generator=generator)


def test_a_token_embedding_has_as_many_symbols_as_it_says():
    assert vocabulary(Token(vocab=7, dim=2)) == 7


def test_an_embedding_of_continuous_inputs_is_refused():
    message = "^embedding 'continuous' has no vocabulary to predict$"
    with pytest.raises(ZooError, match=message):
        vocabulary(Continuous())
