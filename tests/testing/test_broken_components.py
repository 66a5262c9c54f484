"""Laws with teeth: each catches a component made to break it, and spares the sound one."""

import pytest
import torch
from broken import BROKEN as BROKEN_PARTS
from broken_attention import BROKEN as BROKEN_ATTENTION
from broken_backbone import BROKEN as BROKEN_BACKBONES
from broken_frames import BROKEN as BROKEN_FRAMES
from broken_graphs import BROKEN as BROKEN_GRAPHS
from broken_modules import BROKEN as BROKEN_MODULES

from zoo.testing import LawViolation, check
from zoo.testing.configuration import configurations
from zoo.testing.laws import LAWS
from zoo.testing.run import run_law

BROKEN = [
    *BROKEN_PARTS,
    *BROKEN_ATTENTION,
    *BROKEN_BACKBONES,
    *BROKEN_FRAMES,
    *BROKEN_GRAPHS,
    *BROKEN_MODULES,
]
_NEEDS_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]


def _law(kind, name):
    return next(law for law in LAWS[kind] if law.name == name)


def _outcome(name, component):
    config = next(configurations(component))
    return run_law(_law(component.kind, name), config)


@pytest.mark.parametrize(
    ("law", "broken", "sound"),
    [
        pytest.param(*row, id=row[1].__name__, marks=_NEEDS_GPU if row[0] == "matches-gpu" else ())
        for row in BROKEN
    ],
)
def test_the_law_catches_the_broken_one_and_spares_the_sound_one(law, broken, sound):
    caught = _outcome(law, broken)
    assert caught.status == "failed", caught
    spared = _outcome(law, sound)
    assert spared.status == "passed", spared


def test_every_law_has_a_component_that_breaks_it():
    common = {law.name for law in LAWS["scorer"]} & {law.name for law in LAWS["metric"]}
    needed = {
        ("any" if law.name in common else kind, law.name)
        for kind, laws in LAWS.items()
        for law in laws
    }
    shown = {("any" if law in common else broken.kind, law) for law, broken, _ in BROKEN}
    assert needed == shown


def test_every_law_states_itself():
    assert all(law.statement.endswith(".") for laws in LAWS.values() for law in laws)


def test_check_raises_with_every_broken_law():
    broken = next(cls for _, cls, _ in BROKEN if cls.__name__ == "FullyMaskedNan")
    with pytest.raises(LawViolation, match="fully-masked-rows") as caught:
        check(broken)
    assert {"fully-masked-rows", "has-paper"} <= {outcome.law for outcome in caught.value.outcomes}


def test_check_says_why_something_is_no_component():
    with pytest.raises(LawViolation, match="is no component class"):
        check(dict)
