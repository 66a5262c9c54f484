"""Word embedding computed from characters.

Notation: B batch, S words, C characters of a word, D width, F filters.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Embedding, TensorSchema

Size = Annotated[int, Field(ge=1)]


class CharacterCNN(Embedding):
    r"""Word embedding from characters: convolutions, maximum over time and highway layers.

    .. math::
        f = [\max_t \mathrm{ReLU}(K_w * c)_t]_w, \qquad
        x = W\, \mathrm{highway}(f) + b, \qquad
        \mathrm{highway}(f) = t \odot \mathrm{ReLU}(W_h f + b_h) + (1 - t) \odot f

    where c are the embedded characters of a word, w the filter widths and t = σ(W_t f + b_t).

    Paper: Kim et al. 2016, section 2.2 and equation 8; Peters et al. 2018, section 3.4 (ReLU and
    the projection W). A word is padded to `length` characters with a separate ID, not with 0:
    a position whose first ID is 0 is padding. `character_ids` converts words to IDs. The values of
    characters start between -1 and 1, as in the code of Peters et al. 2018.

    Args:
        characters: number of character IDs; ID 0 marks padded positions.
        dim: width of the embedding.
        character_dim: width of an embedded character.
        filters: width and number of the filters of each convolution.
        highway: number of highway layers.
        length: number of characters of a word.

    Shapes:
        character IDs [B, S, length] -> [B, S, dim].
    """

    name: ClassVar[str] = "character-cnn"
    paper: ClassVar[str] = "Kim et al. 2016, Character-Aware Neural Language Models, AAAI"
    test_params: ClassVar[dict[str, Any]] = {"filters": [[1, 2], [3, 4]], "length": 5}

    padding: int = 0

    def __init__(
        self,
        *,
        characters: Annotated[int, Field(ge=2)],
        dim: Size,
        character_dim: Size = 16,
        filters: Annotated[Sequence[tuple[Size, Size]], Field(min_length=1)],
        highway: Annotated[int, Field(ge=0, le=64)] = 2,
        length: Annotated[int, Field(ge=1, le=1024)] = 50,
    ) -> None:
        super().__init__()
        widest = max(width for width, _ in filters)
        if widest > length:
            raise ZooError(
                f"filters of width {widest} need words of at least {widest} characters, "
                f"but length is {length}"
            )
        self.characters, self.dim, self.length = characters, dim, length
        self.character_dim, self.highway = character_dim, highway
        self.table = nn.Embedding(characters, character_dim, padding_idx=self.padding)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(character_dim, number, width) for width, number in filters
        )
        features = sum(number for _, number in filters)
        self.highways = nn.Sequential(*(Highway(features) for _ in range(highway)))
        self.projection = nn.Linear(features, dim)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        nn.init.uniform_(self.table.weight, -1.0, 1.0)
        self.table.weight[self.padding].zero_()

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.dim() != 3 or inputs.shape[2] != self.length:
            raise ZooError(
                f"character IDs are {list(inputs.shape)}, expected [B, S, {self.length}]"
            )
        characters = self.table(inputs.flatten(0, 1)).transpose(1, 2)  # [B * S, D, C]
        maxima = [conv(characters).amax(dim=2) for conv in self.convolutions]
        features = self.highways(F.relu(torch.cat(maxima, dim=1)))  # [B * S, F]
        vectors = self.projection(features).unflatten(0, inputs.shape[:2])
        words: Tensor = vectors.masked_fill(~self.mask(inputs)[..., None], 0.0)
        return words

    def input_schema(self) -> TensorSchema:
        return TensorSchema(
            ("B", "S", self.length), "integer", below=self.characters, pad=self.padding
        )

    def mask(self, inputs: Tensor) -> Tensor:
        return inputs[..., 0] != self.padding

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        device = self.table.weight.device
        where = generator.device if generator else device
        shape = (batch, length, self.length)
        ids = torch.randint(1, self.characters, shape, generator=generator, device=where)
        return ids.to(device)


class Highway(nn.Module):
    """Highway layer, initialised so that most of the input passes unchanged."""

    weight_roles: ClassVar[Mapping[str, str]] = {"gate.bias": "special"}

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, x: Tensor) -> Tensor:
        t = self.gate(x).sigmoid()
        highway: Tensor = t * F.relu(self.transform(x)) + (1 - t) * x
        return highway
