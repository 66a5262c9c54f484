"""Samplers and filters in specs, and in a model's ``generate``."""

import jsonschema
import pytest
import torch

import zoo
from zoo.registry.component_registry import default_registry
from zoo.spec.schema import spec_schema
from zoo_sampling.beam import Beam
from zoo_sampling.greedy import Greedy
from zoo_sampling.no_repeat_ngram import NoRepeatNgram

BASE = "bahdanau-reversal"


def spec(**sections):
    data = dict(zoo.load_spec(BASE).resolve())
    return {**data, **sections}


FILTERS = [{"type": "no-repeat-ngram", "n": 2}, "repetition-penalty"]


def test_a_spec_preserves_the_order_of_its_filters():
    loaded = zoo.load_spec(spec(filters=FILTERS))

    assert [each.build().name for each in loaded.sections.filters] == [
        "no-repeat-ngram",
        "repetition-penalty",
    ]
    assert loaded.resolve()["filters"] == [
        {"type": "sampling:no-repeat-ngram", "n": 2},
        {"type": "sampling:repetition-penalty", "penalty": 1.2},
    ]
    assert {"no-repeat-ngram", "repetition-penalty"} <= {row["name"] for row in loaded.providers()}
    assert zoo.load_spec(BASE).sections.filters == ()


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"filters": ["greedy"]}, r"'greedy' is a sampler, but this slot takes a filter"),
        ({"filters": ["no-repeat-ngrm"]}, r"did you mean 'no-repeat-ngram'"),
        ({"filters": [{"type": "no-repeat-ngram", "n": 0}]}, r"\.n: is 0, but should be"),
        ({"sampler": {"type": "beam", "width": 0}}, r"sampler\.width: is 0, but should be"),
        ({"sampler": {"type": "beam", "early_stopping": "often"}}, r"sampler\.early_stopping"),
        ({"sampler": {"type": "diverse-beam", "diversity": -1.0}}, r"sampler\.diversity: is -1"),
    ],
)
def test_errors_name_the_key(sections, message):
    with pytest.raises(zoo.SpecError, match=message):
        zoo.load_spec(spec(**sections))


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        ({"type": "beam", "width": 2, "n_best": 3}, r"n_best \(3\).*width \(2\)"),
        ({"type": "diverse-beam", "groups": 3}, r"groups \(3\).*width \(4\)"),
    ],
)
def test_check_reports_errors_of_constructors(sampler, message):
    with pytest.raises(zoo.SpecError, match=message):
        zoo.check(spec(sampler=sampler))


@pytest.mark.parametrize(
    "sampler",
    [
        {"type": "beam", "early_stopping": "never", "length_penalty": 0.6, "n_best": 1},
        {"type": "diverse-beam", "width": 6, "groups": 3, "early_stopping": True},
        {"type": "top-p", "p": 0.5, "temperature": 0.7},
        "min-p",
    ],
)
def test_the_schema_accepts_valid_samplers_and_filters(sampler):
    data = spec(sampler=sampler, filters=FILTERS)

    jsonschema.Draft202012Validator(spec_schema(default_registry())).validate(data)
    assert zoo.check(data) is not None


def test_a_model_generates_with_filters():
    model = zoo.compose(BASE, seed=0).eval()
    batch = model.example(4, 5, torch.Generator().manual_seed(0))

    unfiltered = model.generate(batch, Greedy(), max_length=8)
    filtered = model.generate(batch, Greedy(), max_length=8, filters=[NoRepeatNgram(n=1)])
    beam = model.generate(batch, Beam(n_best=2), max_length=8, filters=[NoRepeatNgram(n=1)])

    assert any(len(set(row)) < len(row) for row in unfiltered.best())
    for row in (*filtered.best(), *beam.tokens.flatten(0, 1).tolist()):
        tokens = [token for token in row if token != model.pad]
        assert len(set(tokens)) == len(tokens)
    assert beam.tokens.shape[:2] == (4, 2)
