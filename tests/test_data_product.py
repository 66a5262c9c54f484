"""Every model with every field and preprocessor: what is accepted makes a batch and trains."""

import itertools

import numpy as np
import pytest
import torch
from contract_kit import REGISTRY, model_parts
from data_kit import ListDataset
from product_kit import field_options, field_value

import zoo
from zoo.data.batches import open_batches
from zoo.plugin import Blueprint
from zoo.spec.data_contract import dataset_problems
from zoo.spec.training import Batching
from zoo.testing.tiny import PLUGIN

MODELS = {
    name: part
    for name, part in model_parts().items()
    if ", hard" not in name
    and not name.startswith(("features", "one-tower"))  # without an objective
}
JOINT = ("text-pair", "words")
"""They make one array of several texts, whose length is not that of other keys."""
PREPROCESSORS = [
    entry.cls
    for entry in REGISTRY.components("preprocessor")
    if entry.plugin != PLUGIN and entry.name not in JOINT
]
OBJECTIVES = {
    "ctc-recogniser": {"type": "ctc", "impossible": "zero"},
    "ctc-attention": {"type": "joint-ctc", "attention": "cross-entropy", "impossible": "zero"},
    "draw": "variational",
    "ram": "hybrid-reinforce",
}


def _objective(name):
    if name == "regressor" or "scores" in name:
        return "mean-squared-error"
    multi = "binary-cross-entropy" if "multi_label" in name else "cross-entropy"
    negative = "negative-sampling" if name in ("cbow", "skip-gram") else multi
    return OBJECTIVES.get(name, negative)


def _problems(schema, chosen):
    fields = {key: field for key, (field, _) in chosen.items()}
    built = {key: item for key, (_, item) in chosen.items() if item is not None}
    blueprint = Blueprint(ListDataset, {"columns": {}, "fields": fields})
    made = {key: item.outputs(key) for key, item in built.items()}
    classes = {key: type(item) for key, item in built.items()}
    found = dataset_problems(blueprint, blueprint.build(), schema, classes, made, REGISTRY)
    return [problem.message for problem in found]


def _combinations(schema):
    """Yield fields and preprocessors by key, so that each that is accepted occurs once."""
    accepted = {
        key: [
            option
            for option in field_options(key, field, PREPROCESSORS)
            if not _problems({key: field}, {key: option})
        ]
        for key, field in schema.items()
        if not field.optional
    }
    count = max(len(options) for options in accepted.values())
    columns = [itertools.islice(itertools.cycle(options), count) for options in accepted.values()]
    for options in zip(*columns, strict=True):
        yield dict(zip(accepted, options, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_accepted_fields_and_preprocessors_train_the_model(name):
    spec = {"zoo": 1, "name": "product", "model": MODELS[name], "objective": _objective(name)}
    model = zoo.compose(spec, registry=REGISTRY)
    objective = zoo.objective(zoo.load_spec(spec, registry=REGISTRY))
    schema = model.batch_schema()
    trained = 0
    for chosen in _combinations(schema):
        if _problems(schema, chosen):
            continue
        rng = np.random.default_rng(0)
        columns = {
            key: [
                field_value(field, schema[key], size, rng)
                for size in ((3, 3, 3) if schema[key].same_size else (2, 3, 2))
            ]
            for key, (field, _) in chosen.items()
        }
        fields = {key: field for key, (field, _) in chosen.items()}
        dataset = Blueprint(ListDataset, {"columns": columns, "fields": fields})
        built = {key: item for key, (_, item) in chosen.items() if item is not None}
        batches = open_batches(dataset, model, built, Batching(items=3), seed=0)
        (update,), (rows,) = batches.epoch(0), batches.sampler()
        (batch,) = update.batches
        alone = batches.dataset.collate([batches.dataset[row] for row in rows])
        torch.testing.assert_close(batch, alone, rtol=0, atol=0)
        assert update.items == 3
        loss = objective(model(batch))
        assert loss.isfinite(), f"{chosen}: the loss is {loss}"
        loss.backward()
        trained += 1
    assert trained, "nothing fits"


def test_a_key_that_a_preprocessor_makes_and_a_field_gives_is_reported():
    spec = {"zoo": 1, "name": "product", "model": MODELS["masked-lm"]}
    schema = zoo.compose(spec, registry=REGISTRY).batch_schema()
    masked = next(
        (field, item)
        for field, item in field_options("source", schema["source"], PREPROCESSORS)
        if field.content == "text" and item is not None and item.name == "masked-text"
    )
    array = next(
        (field, item)
        for field, item in field_options("target", schema["target"], ())
        if field.content == "array"
    )
    assert _problems(schema, {"source": masked}) == []
    (message,) = _problems(schema, {"source": masked, "target": array})
    assert "('masked-text') makes 'target', but dataset 'list' also has a field 'tar" in message
