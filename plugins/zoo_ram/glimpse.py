"""The glimpse network: what was seen, and where."""

from torch import Tensor, nn


class Glimpse(nn.Module):
    """g = ReLU(A ReLU(W seen) + B ReLU(U place)), as in section 4 of Mnih et al. 2014.

    Shapes:
        seen [B, ...], places [B, 2] -> [B, hidden].
    """

    def __init__(self, *, input_dim: int, what: int, where: int, hidden: int) -> None:
        super().__init__()
        self.see = nn.Linear(input_dim, what)
        self.place = nn.Linear(2, where)
        self.what = nn.Linear(what, hidden)
        self.where = nn.Linear(where, hidden)

    def forward(self, seen: Tensor, locations: Tensor) -> Tensor:
        what: Tensor = self.what(self.see(seen.flatten(1)).relu())
        where: Tensor = self.where(self.place(locations.to(seen)).relu())
        return (what + where).relu()
