"""A plugin with names that the zoo has: specs of plugins keep using their own components."""

import json

import pytest
from plugin_kit import HOOK, SCORER, Site
from safetensors.torch import save_file

import zoo
from zoo.artifact import load
from zoo.cli import new_plugin
from zoo.errors import RegistryError, SpecError, ZooWarning
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo_exchange.import_plan import plan_import

# Registers scorer 'additive', decoder 'transformer' and encoder 'transformer'.
PLUGIN = (
    SCORER.format(name="additive")
    + """
from zoo.testing.tiny import TinyDecoder, TinyEncoder

class Decoder(TinyDecoder):
    name: ClassVar[str] = "transformer"

class Encoder(TinyEncoder):
    name: ClassVar[str] = "transformer"
"""
    + HOOK.format(result="[Plain, Decoder, Encoder]")
)
OWN_SPEC = """\
zoo: 1
name: own
model:
  type: seq2seq
  source: {type: token, vocab: 9, dim: 4}
  encoder: transformer
  decoder: transformer
"""
USER_SPEC = """\
extends: bahdanau-reversal
name: mine
model:
  decoder:
    attention: {scorer: additive}
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        site = Site(tmp_path_factory.mktemp("conflicts") / "site", patch)
        site.add("rival", PLUGIN, specs={"own": OWN_SPEC})
        yield site.registry()


def _types(spec):
    """Return all qualified names in a resolved spec."""
    if isinstance(spec, dict):
        found = {spec["type"]} if "type" in spec else set()
        return found.union(*map(_types, spec.values()))
    return set().union(*map(_types, spec)) if isinstance(spec, list) else set()


@pytest.mark.parametrize("name", sorted(default_registry().specs))
def test_a_shipped_spec_uses_the_components_of_its_distribution(name, registry: ComponentRegistry):
    resolved = zoo.load_spec(name, registry=registry).resolve()
    assert resolved == zoo.load_spec(name).resolve()


def test_a_spec_of_a_plugin_uses_its_own_components_first(registry):
    resolved = zoo.load_spec("own", registry=registry).resolve()
    assert _types(resolved) == {
        "seq2seq:seq2seq",
        "tokens:token",
        "rival:transformer",
    }
    zoo.check("own", registry=registry)


def test_a_name_in_a_users_spec_is_ambiguous_with_its_line(registry, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(USER_SPEC)
    with pytest.raises(SpecError) as caught:
        zoo.check(path, registry=registry)
    (problem,) = caught.value.problems
    assert (problem.place.file, problem.place.line) == (str(path), 5)
    assert "use 'bahdanau:additive' or 'rival:additive'" in problem.message

    path.write_text(USER_SPEC.replace("additive", "rival:additive"))
    zoo.check(path, registry=registry)


def test_a_name_in_an_override_is_ambiguous(registry):
    override = "model.decoder.attention.scorer=additive"
    with pytest.raises(SpecError, match=r"--set model.decoder.*is provided by"):
        zoo.load_spec("bahdanau-reversal", overrides=[override], registry=registry)
    zoo.load_spec("bahdanau-reversal", overrides=["model.decoder.hidden=8"], registry=registry)


def test_a_saved_model_loads_with_its_own_components(registry, tmp_path):
    for spec in ("bahdanau-reversal", "transformer-tiny"):
        path = zoo.save(zoo.compose(spec), tmp_path / f"{spec}.safetensors")
        loaded = load(path, registry=registry)
        assert loaded.spec == zoo.load_spec(spec).resolve()


def test_an_importer_uses_the_components_of_its_distribution(registry, tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=11, n_embd=4, n_layer=1, n_head=1, n_positions=6, bos_token_id=1, eos_token_id=2
    )
    model = transformers.GPT2LMHeadModel(config)
    weights = {name: p.detach() for name, p in model.transformer.named_parameters()}
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_text(
        json.dumps({**config.to_dict(), "architectures": ["GPT2LMHeadModel"]})
    )
    plan = plan_import(tmp_path, registry=registry, overrides=["name=other"])
    assert "transformer:transformer" in _types(plan.model.spec)
    assert "rival:transformer" not in _types(plan.model.spec)
    (importer,) = (each for each in registry.importers if each.name == "gpt2")
    spec = zoo.load_spec(importer.spec(importer.test_config), registry=registry, importer=importer)
    assert spec.resolve()["model"]["decoder"]["type"] == "transformer:transformer"


def test_lookup_prefers_the_owner_then_its_distribution(registry):
    plugins = {plugin.name: plugin for plugin in registry.plugins}

    def plugin_for(owner):
        return registry.get("decoder", "transformer", owner=plugins[owner]).plugin

    assert plugin_for("rival") == "rival"
    assert plugin_for("transformer") == "transformer"
    assert plugin_for("bahdanau") == "transformer"
    with pytest.raises(RegistryError, match="is provided by"):
        registry.get("decoder", "transformer")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "additive",
            r"scorer 'additive' is also provided by plugin 'bahdanau'.*'additive:additive'",
        ),
        ("gat", "distribution attention-zoo has a plugin named 'gat' too"),
    ],
)
def test_new_plugin_warns_of_a_name_that_is_used(name, message, tmp_path):
    with pytest.warns(ZooWarning, match=message):
        new_plugin.command(name, "scorer", tmp_path)
    assert (tmp_path / f"zoo-{name}").is_dir()
