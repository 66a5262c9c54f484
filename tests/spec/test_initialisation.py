"""The section `init`: roles of parameters, and when an initialiser is called."""

from collections import Counter

import jsonschema
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.errors import SpecError, ZooError
from zoo.plugin import Initialiser
from zoo.registry.component_registry import default_registry
from zoo.spec.initialisation import find_weights, initialise
from zoo.spec.schema import spec_schema
from zoo.testing.tiny import TinyInitialiser

MODEL = {
    "type": "seq2seq",
    "source": {"type": "token", "vocab": 16, "dim": 4},
    "encoder": {"type": "gru", "hidden": 8},
    "decoder": {
        "type": "attentive-rnn",
        "hidden": 16,
        "attention": {"scorer": "additive", "align": "soft"},
    },
}


def _spec(init, **sections):
    return {"zoo": 1, "name": "small", "model": MODEL, "init": init, **sections}


def _roles(module):
    return {weight.name: weight.role for weight in find_weights(module)}


class Constant(Initialiser):
    name = "constant"

    def initial_std(self, weight):
        return 2.0

    def fill(self, weight):
        weight.tensor.fill_(2.0)


class NeverCalled(Constant):
    name = "never-called"

    def fill(self, weight):
        raise AssertionError("the initialiser was called")


def test_the_role_of_a_parameter_follows_from_its_module():
    layers = nn.ModuleDict(
        {
            "linear": nn.Linear(2, 3),
            "conv": nn.Conv1d(2, 3, 2),
            "lstm": nn.LSTMCell(2, 3),
            "table": nn.Embedding(4, 2),
            "norm": nn.LayerNorm(3),
            "batch": nn.BatchNorm2d(3),
            "vectors": nn.ParameterList([torch.ones(3)]),
        }
    )
    assert _roles(layers) == {
        "linear.weight": "linear",
        "linear.bias": "bias",
        "conv.weight": "convolution",
        "conv.bias": "bias",
        "lstm.weight_ih": "linear",
        "lstm.weight_hh": "recurrent",
        "lstm.bias_ih": "bias",
        "lstm.bias_hh": "bias",
        "table.weight": "embedding",
        "norm.weight": "norm",
        "norm.bias": "norm",
        "batch.weight": "norm",
        "batch.bias": "norm",
        "vectors.0": "vector",
    }


class _Inner(nn.Module):
    weight_roles = {"scale": "norm", "table": "vector"}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.table = nn.Linear(2, 2)


class _Outer(nn.Module):
    def __init__(self, roles):
        super().__init__()
        self.weight_roles = roles
        self.inner = _Inner()


def test_declared_roles_cover_submodules_and_an_outer_module_takes_precedence():
    assert _roles(_Outer({"inner.table.bias": "special"})) == {
        "inner.scale": "norm",
        "inner.table.weight": "vector",
        "inner.table.bias": "special",
    }


@pytest.mark.parametrize("roles", [{"inner.scale": "nrom"}, {"absent": "norm"}])
def test_an_invalid_declaration_is_an_error_that_names_the_class(roles):
    with pytest.raises(ZooError, match=r"_Outer.weight_roles has .*one of linear, "):
        _roles(_Outer(roles))


def test_a_shared_parameter_is_initialised_once_and_keeps_its_padding_row():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(2, 5, bias=False)
            self.table = nn.Embedding(5, 2, padding_idx=3)
            self.table.weight = self.out.weight

    calls = []

    class Counted(Constant):
        def fill(self, weight):
            calls.append(weight.name)
            super().fill(weight)

    model = Tied()
    (weight,) = find_weights(model)
    assert (weight.role, weight.padding) == ("embedding", 3)
    initialise(model, Counted())
    assert calls == ["out.weight"]
    assert model.out.weight.tolist() == [[2.0, 2.0]] * 3 + [[0.0, 0.0], [2.0, 2.0]]


def test_residual_layers_are_counted_for_each_stack():
    counts = {
        weight.name: weight.num_residual
        for weight in find_weights(zoo.compose("transformer-tiny"))
        if weight.num_residual and weight.role == "linear"
    }
    assert len(counts) == 10
    for name, count in counts.items():
        assert name.endswith((".out.weight", ".down.weight"))
        assert count == (4 if name.startswith("encoder") else 6)


def test_the_kind_of_a_weight_is_that_of_the_innermost_component():
    kinds = {weight.name: weight.kind for weight in find_weights(zoo.compose(_spec(None)))}
    assert kinds["decoder.attention.scorers.0.v"] == "scorer"
    assert kinds["decoder.out.weight"] == "decoder"
    assert kinds["source.table.weight"] == "embedding"


def test_compose_initialises_all_parameters_from_the_seed():
    registry = default_registry().with_components([TinyInitialiser], plugin="mine")
    one, same, other = (
        zoo.compose(_spec("tiny"), seed=seed, registry=registry).state_dict() for seed in (3, 3, 4)
    )
    default = zoo.compose(_spec(None), seed=3).state_dict()
    for name, weight in one.items():
        assert torch.equal(weight, same[name])
        assert not torch.equal(weight, other[name])
        assert not torch.equal(weight, default[name])
    assert (one["source.table.weight"][0] == 0).all()
    assert (one["source.table.weight"][1:] != 0).all()


def test_an_initialiser_is_not_called_by_a_check_nor_when_a_model_is_loaded(tmp_path):
    registry = default_registry().with_components([Constant], plugin="mine")
    model = zoo.compose(_spec("constant"), registry=registry)
    path = zoo.save(model, tmp_path / "model.safetensors")

    class Constant2(NeverCalled):
        name = "constant"

    broken = default_registry().with_components([Constant2], plugin="mine")
    zoo.check(_spec("constant"), registry=broken)
    loaded = zoo.artifact.load(path, registry=broken)
    assert loaded.spec["init"] == {"type": "mine:constant"}
    assert (loaded.decoder.out.weight == 2).all()


def test_a_model_loads_without_the_plugin_of_its_initialiser(tmp_path):
    registry = default_registry().with_components([Constant], plugin="mine")
    model = zoo.compose(_spec("constant"), registry=registry)
    loaded = zoo.load(zoo.save(model, tmp_path / "model.safetensors"))
    assert loaded.spec["init"] == {"type": "mine:constant"}
    assert torch.equal(loaded.decoder.out.weight, model.decoder.out.weight)


def test_the_report_counts_the_initialised_parameters():
    report = zoo.check(_spec({"type": "normal", "embeddings": False}))
    tables = 2 * 16 * 4
    assert report.init.type == "normal"
    assert report.init.parameters == report.parameters - tables
    assert report.as_json()["init"] == {
        "type": "normal",
        "plugin": "init",
        "parameters": report.parameters - tables,
    }
    assert zoo.check(_spec(None)).as_json()["init"] is None


def test_the_command_line_shows_the_initialiser():
    checked = CliRunner().invoke(app, ["check", "gpt2-tiny"]).output
    assert "init  normal: 5,328 of 5,488 parameters" in checked  # all but the norms
    assert "init" not in CliRunner().invoke(app, ["check", "draw-tiny"]).output.split()
    assert "scale_residual" in CliRunner().invoke(app, ["show", "normal"]).output


def test_problems_in_the_section_are_reported_with_their_line(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("extends: gpt2-tiny\nname: mine\ninit: {type: normal, sdt: 0.1}\n")
    with pytest.raises(SpecError, match=r"spec.yaml:3:22: init.sdt: unknown key 'sdt'.*'std'"):
        zoo.check(path)


class Broken(Constant):
    name = "broken"

    def fill(self, weight):
        raise KeyboardInterrupt("not filled")


def test_errors_of_a_plugin_are_reported_with_their_section():
    registry = default_registry().with_components([Broken], plugin="mine")
    with pytest.raises(SpecError, match="initialisation failed: KeyboardInterrupt: not filled"):
        zoo.compose(_spec("broken"), registry=registry)


def test_extends_merges_the_section(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("extends: gpt2-tiny\nname: mine\ninit: {std: 0.1}\n")
    assert zoo.load_spec(path).resolve()["init"] == {
        "type": "init:normal",
        "std": 0.1,
        "scale_residual": True,
        "convolutions": "same",
        "embeddings": True,
    }
    path.write_text("extends: gpt2-tiny\nname: mine\ninit: null\n")
    assert zoo.load_spec(path).resolve()["init"] is None


def test_the_json_schema_knows_the_section():
    validator = jsonschema.Draft202012Validator(spec_schema(default_registry()))
    assert not list(validator.iter_errors(_spec({"type": "uniform", "bound": 0.1})))
    assert not list(validator.iter_errors(_spec("xavier-uniform")))
    assert list(validator.iter_errors(_spec({"type": "uniform", "bound": -0.1})))


@pytest.mark.parametrize(
    ("spec", "overrides", "kept"),
    [
        ("skip-gram-tiny", [], ["source.table.weight", "output.weight"]),
        (
            "draw-tiny",
            [],
            [
                *("canvas", "encoder_start", "decoder_start"),
                *(
                    f"{part}.place.{name}"
                    for part in ("read", "write")
                    for name in ("weight", "bias")
                ),
            ],
        ),
        (
            "wav2vec2-tiny",
            [],
            [f"source.surroundings.{name}" for name in ("direction", "length", "bias")],
        ),
        (
            "elmo-tiny",
            [],
            [
                *(f"embedding.highways.{layer}.gate.bias" for layer in (0, 1)),
                *(
                    f"lstm.{side}.{layer}.bias"
                    for side in ("forwards", "backwards")
                    for layer in (0, 1)
                ),
            ],
        ),
        ("ram-tiny", ["model.baseline=relu"], ["baseline.bias"]),
        (
            _spec(None),
            ["model.encoder={type: elmo, lstm: {hidden: 6, layers: 1}}"],
            [
                *(f"encoder.lstm.{side}.0.bias" for side in ("forwards", "backwards")),
                *(f"encoder.mix.{name}" for name in ("weights", "gamma")),
            ],
        ),
        (
            _spec(None),
            ["model.decoder.attention.scorer=normalised-additive"],
            ["decoder.attention.scorers.0.v", "decoder.attention.scorers.0.g"],
        ),
    ],
)
def test_parts_with_their_own_initial_values_keep_them(spec, overrides, kept):
    default = zoo.compose(spec, overrides=[*overrides, "init=null"]).state_dict()
    initialised = ["init={type: uniform, bound: 9.0}"]
    changed = zoo.compose(spec, overrides=[*overrides, *initialised])
    state = changed.state_dict()
    roles = _roles(changed)
    for name, weight in state.items():
        if name in roles and roles[name] not in ("norm", "special"):
            assert not torch.equal(weight, default[name]), name
    assert [name for name, role in roles.items() if role == "special"] == kept
    for name in kept:
        assert torch.equal(state[name], default[name])


@pytest.mark.parametrize(
    ("spec", "overrides"),
    [
        ("gpt2-tiny", []),
        ("transformer-tiny", []),
        ("vit-tiny", []),
        ("bert-tiny", ["model.encoder.share_layers=true", "model.encoder.layers=5"]),
    ],
)
def test_the_residual_connections_of_a_stack_are_the_calls_of_its_layers(spec, overrides):
    model = zoo.compose(spec, overrides=overrides)
    calls, counts = Counter(), {}
    for weight in find_weights(model):
        if weight.num_residual:
            layer = weight.name.rpartition(".")[0]
            stack = layer.partition(".")[0]
            counts.setdefault(stack, set()).add(weight.num_residual)
            if weight.name.endswith("weight"):
                module = model.get_submodule(layer)
                module.register_forward_hook(lambda *_, stack=stack: calls.update([stack]))
    model(model.example(2, 4, torch.Generator().manual_seed(0)))
    assert calls
    assert counts == {stack: {count} for stack, count in calls.items()}
