"""Attentions that remember, count or draw, inside the decoders that look with them."""


import pytest
import torch

from zoo import ZooError, recording
from zoo.plugin import Attention, Blueprint, Memory
from zoo_alignment.entmax import Entmax
from zoo_alignment.hard import Hard
from zoo_alignment.local_m import LocalM
from zoo_alignment.local_p import LocalP
from zoo_alignment.monotonic import Monotonic
from zoo_alignment.soft import Soft
from zoo_alignment.sparsemax import Sparsemax
from zoo_bahdanau.additive import Additive
from zoo_location.location import Location
from zoo_location.location_window import LocationWindow
from zoo_recurrent.attentive_rnn import AttentiveRNN
from zoo_recurrent.luong_rnn import LuongRNN
from zoo_tokens.token import Token

SCORERS = {
    "additive": Blueprint.of(Additive, hidden=3),
    "location": Blueprint.of(Location, hidden=3, filters=2, reach=1),
    "location-window": Blueprint.of(LocationWindow, bumps=2),
}
ALIGNMENTS = {
    "soft": Blueprint.of(Soft),
    "hard": Blueprint.of(Hard),
    "local-m": Blueprint.of(LocalM, D=1),
    "local-p": Blueprint.of(LocalP, D=1),
    "sparsemax": Blueprint.of(Sparsemax),
    "entmax": Blueprint.of(Entmax),
    "monotonic-soft": Blueprint.of(Monotonic, mode="soft"),
    "monotonic-hard": Blueprint.of(Monotonic, mode="hard", r=0.5),
}
CASES = [
    pytest.param(scorer, align, heads, id=f"{scorer}-{align}-{heads}")
    for scorer in SCORERS
    for align in ALIGNMENTS
    for heads in (1, 2)
    if (scorer, align) != ("additive", "soft")
]
SEQUENTIAL = [case for case in CASES if "location" in case.id or "monotonic" in case.id]
TOKENS = torch.tensor([[1, 4, 2, 6, 3], [5, 5, 1, 2, 0], [3, 6, 4, 1, 1], [2, 2, 5, 6, 4]])
DECODERS = pytest.mark.parametrize("decoder", [AttentiveRNN, LuongRNN], ids=lambda d: d.name)


def build(cls, scorer, align, heads=1, merge="concat"):
    torch.manual_seed(0)
    attention = Blueprint.of(
        Attention, scorer=SCORERS[scorer], align=ALIGNMENTS[align], heads=heads, merge=merge
    )
    decoder = cls(
        embedding=Token(vocab=7, dim=3),
        memory_dim=4,
        summary_dim=5,
        carry={},
        attention=attention,
        hidden=4,
    )
    return decoder.double().eval()


def memory() -> Memory:
    """Four items, one of a single step and one with nothing real in it."""
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    mask = torch.arange(5)[None] < torch.tensor([5, 1, 3, 0])[:, None]
    return Memory(draw(4, 5, 4), mask, draw(4, 5))


@DECODERS
@pytest.mark.parametrize(("scorer", "align", "heads"), SEQUENTIAL)
def test_a_reordered_state_goes_on_as_its_parent_would(decoder, scorer, align, heads):
    decoder, one = build(decoder, scorer, align, heads), memory()
    # Four hypotheses of one source.
    given = Memory(
        one.states[:1].expand(4, -1, -1),
        one.mask[:1].expand(4, -1),
        one.summary[:1].expand(4, -1),
    )
    parents = torch.tensor([2, 0, 0, 3])
    _, state = decoder.step(TOKENS[:, :3], decoder.start(given, steps=4))

    logits, _ = decoder.step(TOKENS[parents, 3:4], state.reorder(parents))

    expected = decoder(TOKENS[:, :4], given)[parents, 3:]
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-9)


@DECODERS
@pytest.mark.parametrize("scorer", ["location", "location-window"])
def test_what_was_looked_at_before_matters(decoder, scorer):
    """The second look depends on the first, even if all that the decoder itself knows is equal."""
    decoder, given = build(decoder, scorer, "soft"), memory()
    state = decoder.start(given, steps=2)
    key = "look.weights" if scorer == "location" else "look.0.kappa"
    moved = dict(state.per_hypothesis)
    moved[key] = moved[key] + torch.linspace(0, 1, moved[key].shape[-1])

    with recording(decoder) as log:
        decoder.step(TOKENS[:, :1], state)
        decoder.step(TOKENS[:, :1], state.updated(moved))

    first, second = log["attention"]
    assert not torch.allclose(first[0], second[0])


@DECODERS
def test_hard_monotonic_looks_never_go_back(decoder):
    decoder, given = build(decoder, "additive", "monotonic-hard"), memory()

    with recording(decoder) as log:
        decoder(TOKENS, given)

    looks = torch.cat(log["attention"], dim=2)[0, 0]  # [T, S]
    stops = [row.argmax().item() for row in looks if row.sum() > 0]
    assert stops
    assert stops == sorted(stops)


@pytest.mark.parametrize(
    ("scorer", "align", "part"),
    [
        ("location", "soft", "scorer 'location'"),
        ("location-window", "hard", "scorer 'location-window'"),
        ("additive", "monotonic-soft", "alignment 'monotonic'"),
    ],
)
def test_where_all_queries_come_at_once_the_part_that_cannot_is_named(scorer, align, part):
    attention = build(AttentiveRNN, scorer, align).attention
    message = f"^{part} needs to know where the query before looked, but self-attention answers"

    with pytest.raises(ZooError, match=message):
        attention.forbid_sequential("self-attention")


@pytest.mark.parametrize("align", ["soft", "hard", "local-m", "local-p", "sparsemax", "entmax"])
def test_parts_that_remember_nothing_answer_all_queries_at_once(align):
    build(AttentiveRNN, "additive", align).attention.forbid_sequential("self-attention")
