import pytest
import torch
from attention_kit import SCORERS, randn

from zoo.plugin import Blueprint, Scorer, ScorerBank
from zoo_gat.gat import Gat
from zoo_location.location import Location
from zoo_location.location_window import LocationWindow

BLUEPRINTS = {**SCORERS, "gat": Blueprint.of(Gat)}


def build(scorer: Blueprint[Scorer], heads: int = 3) -> ScorerBank:
    torch.manual_seed(0)
    return ScorerBank(scorer, heads, query_dim=4, key_dim=4)


@pytest.mark.parametrize("name", BLUEPRINTS)
def test_scorers_without_parameters_are_shared(name):
    bank = build(BLUEPRINTS[name])
    has_parameters = any(True for _ in bank.parameters())
    assert bank.shared != has_parameters
    assert len(bank) == (3 if has_parameters else 1)
    assert bank.extra_repr() == f"heads=3, shared={bank.shared}"


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("name", BLUEPRINTS)
def test_each_head_is_scored_by_its_scorer(name, prepared):
    bank = build(BLUEPRINTS[name])
    queries, keys = randn(2, 3, 5, 4), randn(2, 3, 6, 4, seed=2)

    scores = bank(queries, bank.prepare(keys) if prepared else keys, prepared=prepared)

    assert scores.shape == (2, 3, 5, 6)
    for h in range(3):
        scorer = bank[0 if bank.shared else h]
        torch.testing.assert_close(scores[:, h], scorer(queries[:, h], keys[:, h]))


@pytest.mark.parametrize("name", BLUEPRINTS)
def test_edges_are_scored_for_each_head(name):
    bank = build(BLUEPRINTS[name])
    queries, keys = randn(3, 5, 4), randn(3, 6, 4, seed=2)
    target, source = torch.tensor([0, 4, 4, 1]), torch.tensor([5, 0, 0, 2])

    edge_scores = bank(queries, keys, edges=(target, source))

    assert edge_scores.shape == (3, 4)
    torch.testing.assert_close(edge_scores, bank(queries, keys)[:, target, source])


@pytest.mark.parametrize(
    ("scorer", "names"),
    [
        (Blueprint.of(LocationWindow, mixture_components=2), {"0.kappa", "1.kappa", "2.kappa"}),
        (Blueprint.of(Location, hidden=3, filters=2, kernel_radius=1), set()),
    ],
    ids=["location-window", "location"],
)
def test_a_state_is_kept_for_each_head(scorer, names):
    bank = build(scorer)
    queries, keys = randn(2, 3, 1, 4), randn(2, 3, 6, 4, seed=2)
    weights = randn(2, 3, 6, seed=3).softmax(dim=-1)
    prepared = bank.prepare(keys)
    state = bank.init_state(prepared)
    assert set(state) == names

    scores, updated = bank(queries, prepared, prepared=True, state=state | {"weights": weights})

    assert bank.sequential
    assert set(updated) == names
    for h, head in enumerate(bank):
        own = {"weights": weights[:, h]} | head.init_state(prepared[:, h])
        expected, after = head(queries[:, h], keys[:, h], state=own)
        torch.testing.assert_close(scores[:, h], expected)
        assert all(torch.equal(updated[f"{h}.{name}"], after[name]) for name in after)
