from typing import ClassVar

from torch import Tensor, nn

from zoo.plugin import FromParent, Scorer, rename_params


class Bilinear(Scorer):
    name: ClassVar[str] = "bilinear"

    def __init__(
        self,
        *,
        query_dim: FromParent[int],
        sizes: tuple[int, ...] = (2, 3),
        mode: str = "plain",
        W: int = 4,
        unused: int = 5,
    ) -> None:
        super().__init__()
        self.query_dim, self.sizes, self.mode = query_dim, sizes, mode
        self.W = nn.Linear(query_dim, W)

    def score(self, query: Tensor, prepared: Tensor) -> Tensor:
        return query @ self.W(prepared).transpose(-1, -2)

    def score_pairs(self, query: Tensor, key: Tensor) -> Tensor:
        return (query * self.W(key)).sum(dim=-1)


def test_extra_repr_shows_parameters_that_are_plain_attributes():
    scorer = Bilinear(query_dim=3)
    assert scorer.extra_repr() == "query_dim=3, sizes=(2, 3), mode='plain'"
    assert repr(scorer).startswith("Bilinear(\n  query_dim=3, sizes=(2, 3), mode='plain'\n  (W): ")


def test_extra_repr_does_not_require_a_valid_schema():
    class Positional(Bilinear):
        def __init__(self, query_dim, *rest):
            super().__init__(query_dim=query_dim)

    assert Positional(7).extra_repr() == "query_dim=7"


def test_rename_params_renames_present_keys_in_place():
    params = {"reach": 2, "hidden": 8}
    rename_params(params, reach="kernel_radius", absent="other")
    assert params == {"hidden": 8, "kernel_radius": 2}
