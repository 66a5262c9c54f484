"""Sequential, local and stochastic attentions inside the recurrent decoders."""

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
from zoo_recurrent.recurrence import Recurrence
from zoo_tokens.token import Token

SCORERS = {
    "additive": Blueprint.of(Additive, hidden=3),
    "location": Blueprint.of(Location, hidden=3, filters=2, kernel_radius=1),
    "location-window": Blueprint.of(LocationWindow, mixture_components=2),
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
        recurrence=Recurrence(hidden=4),
    )
    return decoder.double().eval()


def memory() -> Memory:
    """Return a memory of four items, one of them of length 1 and one empty."""
    generator = torch.Generator().manual_seed(1)

    def randn(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    mask = torch.arange(5)[None] < torch.tensor([5, 1, 3, 0])[:, None]
    return Memory(randn(4, 5, 4), mask, randn(4, 5))


@DECODERS
@pytest.mark.parametrize(("scorer", "align", "heads"), SEQUENTIAL)
def test_a_reordered_state_continues_as_its_parent(decoder, scorer, align, heads):
    decoder, batch = build(decoder, scorer, align, heads), memory()
    # Four hypotheses of one source.
    source = Memory(
        batch.states[:1].expand(4, -1, -1),
        batch.mask[:1].expand(4, -1),
        batch.summary[:1].expand(4, -1),
    )
    parents = torch.tensor([2, 0, 0, 3])
    _, state = decoder.step(TOKENS[:, :3], decoder.start(source, steps=4))

    logits, _ = decoder.step(TOKENS[parents, 3:4], state.reorder(parents))

    expected = decoder(TOKENS[:, :4], source)[parents, 3:]
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-9)


@DECODERS
@pytest.mark.parametrize("scorer", ["location", "location-window"])
def test_weights_depend_on_the_attention_state(decoder, scorer):
    """A different attention state changes the weights even if the rest of the state is equal."""
    decoder, source = build(decoder, scorer, "soft"), memory()
    state = decoder.start(source, steps=2)
    key = "attention.weights" if scorer == "location" else "attention.0.kappa"
    changed = dict(state.per_hypothesis)
    changed[key] = changed[key] + torch.linspace(0, 1, changed[key].shape[-1])

    with recording(decoder) as log:
        decoder.step(TOKENS[:, :1], state)
        decoder.step(TOKENS[:, :1], state.updated(changed))

    first, second = log["attention"]
    assert not torch.allclose(first[0], second[0])


@DECODERS
def test_hard_monotonic_attention_never_moves_back(decoder):
    decoder, source = build(decoder, "additive", "monotonic-hard"), memory()

    with recording(decoder) as log:
        decoder(TOKENS, source)

    weights = torch.cat(log["attention"], dim=2)[0, 0]  # [T, S]
    positions = [row.argmax().item() for row in weights if row.sum() > 0]
    assert positions
    assert positions == sorted(positions)


@pytest.mark.parametrize(
    ("scorer", "align", "part"),
    [
        ("location", "soft", "scorer 'location'"),
        ("location-window", "hard", "scorer 'location-window'"),
        ("additive", "monotonic-soft", "alignment 'monotonic'"),
    ],
)
def test_parallel_queries_raise_and_name_the_sequential_part(scorer, align, part):
    attention = build(AttentiveRNN, scorer, align).attention

    with pytest.raises(ZooError, match=f"{part}.*self-attention"):
        attention.forbid_sequential("self-attention")


@pytest.mark.parametrize("align", ["soft", "hard", "local-m", "local-p", "sparsemax", "entmax"])
def test_other_alignments_allow_parallel_queries(align):
    build(AttentiveRNN, "additive", align).attention.forbid_sequential("self-attention")
