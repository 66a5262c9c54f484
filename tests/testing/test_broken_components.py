"""Each law fails for a component that violates it and passes for the valid one."""

import re

import pytest
import torch
from broken import BROKEN as BROKEN_PARTS
from broken_accelerations import BROKEN as BROKEN_ACCELERATIONS, NoCases
from broken_adapters import BROKEN as BROKEN_ADAPTERS
from broken_attention import BROKEN as BROKEN_ATTENTION
from broken_autocast import BROKEN as BROKEN_AUTOCAST
from broken_backbone import BROKEN as BROKEN_BACKBONES
from broken_batches import BROKEN as BROKEN_BATCHES
from broken_contracts import BROKEN as BROKEN_CONTRACTS
from broken_cost import BROKEN as BROKEN_COST
from broken_datasets import BROKEN as BROKEN_DATASETS
from broken_decoding import BROKEN as BROKEN_DECODING
from broken_frames import BROKEN as BROKEN_FRAMES
from broken_graphs import BROKEN as BROKEN_GRAPHS
from broken_importers import BROKEN as BROKEN_IMPORTERS
from broken_initialisers import BROKEN as BROKEN_INITIALISERS
from broken_models import BROKEN as BROKEN_MODELS
from broken_modules import BROKEN as BROKEN_MODULES
from broken_preprocessors import BROKEN as BROKEN_PREPROCESSORS
from broken_scores import BROKEN as BROKEN_SCORES
from broken_training import BROKEN as BROKEN_TRAINING

from zoo.testing import LawViolation, check
from zoo.testing.configuration import ImporterConfiguration, configurations
from zoo.testing.laws import LAWS
from zoo.testing.run import importer_laws, run_law

IMPORTER_LAWS = importer_laws()

BROKEN = [
    *BROKEN_PARTS,
    *BROKEN_ACCELERATIONS,
    *BROKEN_ADAPTERS,
    *BROKEN_ATTENTION,
    *BROKEN_AUTOCAST,
    *BROKEN_BACKBONES,
    *BROKEN_BATCHES,
    *BROKEN_CONTRACTS,
    *BROKEN_COST,
    *BROKEN_DATASETS,
    *BROKEN_DECODING,
    *BROKEN_FRAMES,
    *BROKEN_GRAPHS,
    *BROKEN_INITIALISERS,
    *BROKEN_MODULES,
    *BROKEN_MODELS,
    *BROKEN_PREPROCESSORS,
    *BROKEN_SCORES,
    *BROKEN_TRAINING,
]
_NEEDS_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
_MARKS = {"matches-gpu": _NEEDS_GPU, "bounded-cost": pytest.mark.slow}


def _law(kind, name):
    return next(law for law in LAWS[kind] if law.name == name)


def _outcome(name, component):
    config = next(configurations(component))
    return run_law(_law(component.kind, name), config)


@pytest.mark.parametrize(
    ("law", "broken", "valid"),
    [pytest.param(*row, id=row[1].__name__, marks=_MARKS.get(row[0], ())) for row in BROKEN],
)
def test_the_law_fails_for_the_broken_component_and_passes_for_the_valid_one(law, broken, valid):
    failed = _outcome(law, broken)
    assert failed.status == "failed", failed
    assert not re.match("(Attribute|Import|Name|Type)Error", failed.message), failed
    passed = _outcome(law, valid)
    assert passed.status == "passed", passed


@pytest.mark.parametrize(
    ("law", "broken", "valid"), [pytest.param(*row, id=row[1].__name__) for row in BROKEN_IMPORTERS]
)
def test_the_law_fails_for_the_broken_importer_and_passes_for_the_valid_one(law, broken, valid):
    (found,) = (each for each in IMPORTER_LAWS if each.name == law)
    failed = run_law(found, ImporterConfiguration(broken()))
    assert failed.status == "failed", failed
    passed = run_law(found, ImporterConfiguration(valid()))
    assert passed.status == "passed", passed


def test_every_law_of_importers_has_an_importer_that_violates_it():
    assert {law.name for law in IMPORTER_LAWS} == {law for law, _, _ in BROKEN_IMPORTERS}
    assert all(law.statement.endswith(".") for law in IMPORTER_LAWS)


def test_every_law_has_a_component_that_violates_it():
    common = {law.name for law in LAWS["scorer"]} & {law.name for law in LAWS["metric"]}
    expected = {
        ("any" if law.name in common else kind, law.name)
        for kind, laws in LAWS.items()
        for law in laws
    }
    found = {("any" if law in common else broken.kind, law) for law, broken, _ in BROKEN}
    assert found == expected


def test_every_law_has_a_statement():
    assert all(law.statement.endswith(".") for laws in LAWS.values() for law in laws)


def test_check_raises_with_every_violated_law():
    broken = next(cls for _, cls, _ in BROKEN if cls.__name__ == "FullyMaskedNan")
    with pytest.raises(LawViolation, match="fully-masked-rows") as caught:
        check(broken)
    assert {"fully-masked-rows", "has-paper"} <= {outcome.law for outcome in caught.value.outcomes}


def test_check_rejects_a_class_that_is_not_a_component():
    with pytest.raises(LawViolation, match=r"dict.*component class"):
        check(dict)


def test_an_acceleration_without_cases_is_not_accepted():
    with pytest.raises(LawViolation, match="it has no cases; define the method 'cases'"):
        check(NoCases)
