"""The glimpse network."""

from torch import Tensor, nn


class GlimpseNetwork(nn.Module):
    """Glimpse network, g = ReLU(A ReLU(W patches) + B ReLU(U location)).

    Paper: Mnih et al. 2014, section 4.

    Shapes:
        patches [B, ...], locations [B, 2] -> [B, hidden].
    """

    def __init__(
        self, *, input_dim: int, glimpse_hidden: int, location_hidden: int, hidden: int
    ) -> None:
        super().__init__()
        self.see = nn.Linear(input_dim, glimpse_hidden)
        self.place = nn.Linear(2, location_hidden)
        self.what = nn.Linear(glimpse_hidden, hidden)
        self.where = nn.Linear(location_hidden, hidden)

    def forward(self, patches: Tensor, locations: Tensor) -> Tensor:
        what: Tensor = self.what(self.see(patches.flatten(1)).relu())
        where: Tensor = self.where(self.place(locations.to(patches)).relu())
        return (what + where).relu()
