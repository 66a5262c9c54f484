"""Every model with every objective, sampler and metric: checked and usable, or rejected."""

import itertools

import pytest
import torch
from contract_kit import REGISTRY, model_parts, predict

import zoo
from zoo.interfaces import FrameSampler
from zoo.registry.blueprint import BuildNode
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.contracts import contract_problems
from zoo.spec.spec import Sections, Spec, SpecHeading
from zoo.testing.configuration import configurations
from zoo.testing.laws.helpers import example_batch

MODELS = model_parts()
# Models that generate in the same way as another one.
VARIANTS = (
    "seq2seq, hard",
    "seq2seq, hard, attention",
    "seq2seq, soft, attention",
    "ctc-attention, hard",
)
GENERATION_MODELS = [
    pytest.param(name, marks=pytest.mark.slow if name in VARIANTS else ()) for name in MODELS
]
OBJECTIVE_SLOTS = {
    "joint-ctc": {"attention": "reinforce"},
    "supporting-facts": {"answer": "cross-entropy", "facts": "binary-cross-entropy"},
}
UNTRAINED = {("ram", "reinforce"): ("baseline.",)}
"""Parameters that an objective does not train, as the model documents."""


def _parts(kind):
    entries = REGISTRY.components(kind)
    named = [entry for entry in entries if entry.plugin != "zoo-testing"]
    params = {entry.name: dict(next(configurations(entry.cls)).params) for entry in named}
    slots = {name: {**params[name], **OBJECTIVE_SLOTS.get(name, {})} for name in params}
    return {name: {"type": name, **values} for name, values in slots.items()}


OBJECTIVES, SAMPLERS, METRICS = _parts("objective"), _parts("sampler"), _parts("metric")


def _data(model, **sections):
    return {"zoo": 1, "name": "pair", "model": MODELS[model], **sections}


def _compose(data, name):
    """Return the model of a valid spec; a rejection names the part and what fits."""
    try:
        return zoo.compose(data, registry=REGISTRY)
    except zoo.SpecError as error:
        for problem in error.problems:
            assert f"'{name}'" in problem.message
            assert " fit: " in problem.message or "remove it" in problem.message
            assert problem.place is None or problem.path
        return None


WITHOUT_OBJECTIVE = ("features", "one-tower")
"""Models without a head."""


def _assert_trains(model, name, data, built):
    objective = _blueprint(data, "objective").build()
    loss = objective(built.train()(example_batch(built)))
    assert loss.isfinite()
    loss.backward()
    untrained = [n for n, p in built.named_parameters() if p.grad is None or not p.grad.any()]
    documented = UNTRAINED.get((model.split(",")[0], name), ("none",))
    assert [n for n in untrained if not n.startswith(documented)] == []


@pytest.mark.parametrize("model", MODELS)
def test_an_accepted_objective_trains_the_model(model):
    fitting = []
    for name, part in OBJECTIVES.items():
        data = _data(model, objective=part)
        if built := _compose(data, name):
            fitting.append(name)
            _assert_trains(model, name, data, built)
    assert bool(fitting) == (model.split(",")[0] not in WITHOUT_OBJECTIVE), "objectives that fit"
    assert len(fitting) < len(OBJECTIVES)


@pytest.mark.parametrize("model", GENERATION_MODELS)
def test_an_accepted_sampler_generates(model):
    for name, part in SAMPLERS.items():
        data = _data(model, sampler=part)
        if built := _compose(data, name):
            sampler = _blueprint(data, "sampler").build()
            output = built.generate(example_batch(built), sampler, max_length=3)
            assert output.tokens.shape[0] == 3


@pytest.mark.parametrize("model", GENERATION_MODELS)
def test_an_accepted_metric_is_computed_from_predictions_of_the_model(model):
    for name, part in METRICS.items():
        data = _data(model, metrics=[part])
        if built := _compose(data, name):
            (metric,) = zoo.metrics(zoo.load_spec(data, registry=REGISTRY))
            metric.update(*predict(built, metric.consumes))
            assert metric.compute()


@pytest.fixture(scope="module")
def parts():
    """All objectives, and one sampler and metric for each value that is compared with a model."""
    data = _data(next(iter(MODELS)), metrics=list(METRICS.values()))
    samplers = [
        _node(_blueprint({**data, "sampler": part}, "sampler")) for part in SAMPLERS.values()
    ]
    objectives = [
        _node(_blueprint({**data, "objective": part}, "objective")) for part in OBJECTIVES.values()
    ]
    decoding = {
        (node.part.decoding, isinstance(node.part, FrameSampler)): node for node in samplers
    }
    consumed = {part.cls.consumes: part for part in _blueprint(data, "metrics")}
    return objectives, list(decoding.values()), list(consumed.values())


@pytest.mark.parametrize("model", MODELS)
def test_a_combination_is_valid_if_each_pair_is(model, parts):
    with torch.device("meta"):
        tree = _node(_blueprint(_data(model), "model"))
    objectives, samplers, metrics = parts
    single = {
        id(part): _problems(tree, **{key: part})
        for key, each in (("objective", objectives), ("sampler", samplers), ("metric", metrics))
        for part in each
    }
    for chosen in itertools.product(objectives, samplers, metrics):
        named = dict(zip(("objective", "sampler", "metric"), chosen, strict=True))
        assert _problems(tree, **named) == [p for part in chosen for p in single[id(part)]]


def _node(blueprint):
    return BuildNode(blueprint, {}, blueprint.build())


def _blueprint(data, section):
    return getattr(zoo.load_spec(data, registry=REGISTRY).sections, section)


def _problems(tree, objective=None, sampler=None, metric=None):
    sections = Sections(
        heading=SpecHeading(zoo=1, name="all"),
        model=tree.blueprint,
        objective=objective and objective.blueprint,
        sampler=sampler and sampler.blueprint,
        metrics=[metric] if metric else (),
    )
    root = BuildNode(tree.blueprint, {}, None, [tree, *filter(None, [objective, sampler])])
    return list(contract_problems(Spec(sections, tree.blueprint), root, ComponentRegistry()))
