"""Every shipped spec checks, runs and trains; registry.yaml lists the published ones."""

import runpy
from pathlib import Path

import pytest
import torch

import zoo
from zoo.hub.catalogue import read_catalogue
from zoo.registry.component_registry import default_registry
from zoo.spec.document import read_file

ROOT = Path(__file__).parents[1]
SPECS = sorted(default_registry().specs)
CATALOGUE = read_file(ROOT / "registry.yaml").data
REFERENCES = runpy.run_path(str(ROOT / "lab" / "benchmarks" / "parameters.py"))["REFERENCES"]

CAPTIONS = [
    "model.source.backbone.layers=[{channels: 6, pool: {}}, {channels: 6, pool: {}}]",
    "model.target={vocab: 16, dim: 6}",
    "model.decoder={hidden: 7, dropout: 0.0, attention: {scorer: {hidden: 3}}}",
]

# Overrides that make published specs small enough to train.
SMALL = {
    "bahdanau-2015": [
        "model.source={vocab: 16, dim: 6}",
        "model.encoder.hidden=5",
        "model.decoder={hidden: 7, readout: 4, attention: {scorer: {hidden: 3}}}",
    ],
    "bahdanau-reversal": [],
    "luong-2015": [
        "model.source={vocab: 16, dim: 6}",
        "model.encoder.hidden=5",
        "model.decoder.hidden=5",
    ],
    "luo-2016": [
        "model.source={rate: 1000, window: 64, hop: 32, mels: 8}",
        "model.target={vocab: 12, dim: 6}",
        "model.encoder={hidden: 5, layers: 1}",
        "model.decoder.hidden=7",
    ],
    "skip-gram-2013": ["model.source={vocab: 16, dim: 6}"],
    "cbow-2013": ["model.source={vocab: 16, dim: 6}"],
    "ntm-copy": ["model.encoder={hidden: 16, slots: 8, width: 6}"],
    "dnc-2016": [
        "model.source={vocab: 12, dim: 6}",
        "model.encoder={hidden: 16, slots: 6, width: 5, read_heads: 2}",
    ],
    "memory-network-2015": ["model.source={vocab: 16, dim: 8}"],
    "dynamic-memory-2016": ["model.source={vocab: 16, dim: 8}", "model.encoder.hidden=8"],
    "deepspeech-ctc": [
        "model.source={inner: {rate: 1000, window: 64, hop: 32, mels: 8}, dim: 12, channels: 4}",
        "model.encoder={hidden: 8, layers: 2}",
        "model.vocab=6",
    ],
    "transformer-ctc": [
        "model.source={inner: {rate: 1000, window: 64, hop: 32, mels: 8}, dim: 16, channels: 4}",
        "model.encoder={layers: 2, feed_forward: {hidden: 32}, dropout: 0.0}",
        "model.vocab=6",
    ],
    "show-attend-tell-soft": CAPTIONS,
    "show-attend-tell-hard": CAPTIONS,
    "video-2015": [
        "model.source={height: 8, width: 8, motion: {layers: [3]}}",
        "model.source.backbone.layers=[{channels: 4, norm: batch, pool: {}}]",
        "model.target={vocab: 16, dim: 6}",
        "model.decoder={hidden: 7, readout: 4, dropout: 0.0, attention: {scorer: {hidden: 3}}}",
    ],
    "transformer-small": [
        "model.source={vocab: 16, dim: 8}",
        "model.encoder={layers: 1, feed_forward: {hidden: 16}}",
        "model.decoder={layers: 1, feed_forward: {hidden: 16}}",
    ],
    "bahdanau-small": [
        "model.source={vocab: 16, dim: 6}",
        "model.encoder.hidden=5",
        "model.decoder={hidden: 7, readout: 4, attention: {scorer: {hidden: 3}}}",
    ],
    "image-small": ["model.encoder.layers=1"],
    "text-small": [
        "model.source={vocab: 16, dim: 8}",
        "model.encoder={layers: 1, feed_forward: {hidden: 16}, dropout: 0.0}",
    ],
    "tagger-small": [
        "model.source={vocab: 16, dim: 6}",
        "model.encoder={hidden: 5, layers: 1, dropout: 0.0}",
        "model.labels=4",
    ],
    "lm-small": [
        "model.embedding={vocab: 16, dim: 8}",
        "model.decoder={layers: 1, feed_forward: {hidden: 16}, attention: {heads: 2}}",
        "sampler=greedy",
    ],
    "audio-small": [
        "model.source={rate: 1000, window: 64, hop: 32, mels: 8}",
        "model.encoder={hidden: 8, layers: 1}",
        "preprocessing.source.rate=1000",
    ],
    "speech-small": [
        "model.source={inner: {rate: 1000, window: 64, hop: 32, mels: 8}, dim: 12, channels: 4}",
        "model.encoder={hidden: 8, layers: 1}",
        "model.vocab=6",
    ],
    "gat-small": ["model={features: 6, encoder: {dropout: 0.0, attention: {dropout: 0.0}}}"],
    "graph-small": ["model={features: 6, encoder: {dropout: 0.0, attention: {dropout: 0.0}}}"],
    "gat-cora": ["model={features: 6, encoder: {dropout: 0.0, attention: {dropout: 0.0}}}"],
    "gat-ppi": ["model={features: 6, classes: 5, encoder: {hidden: 4, output: 5}}"],
    "lstm-lm": ["model.embedding={vocab: 16, dim: 6}", "model.decoder={hidden: 7, dropout: 0.0}"],
    "draw-mnist": ["model={height: 6, width: 5, steps: 3, latent: 3, hidden: 8, write_size: 4}"],
    "ram-mnist": ["model={retina: {size: 4}, glimpses: 3, glimpse_hidden: 16, hidden: 16}"],
    "ram-translated": ["model={retina: {size: 4}, glimpses: 3, location_hidden: 8, hidden: 16}"],
    "g2p-en": [
        "model.source={vocab: 16, dim: 6}",
        "model.target={vocab: 12, dim: 6}",
        "model.encoder.hidden=5",
        "model.decoder.hidden=5",
    ],
    "nano-ocr": [
        "model.vocab=9",
        "model.source={height: 8, backbone: {layers: [{channels: 6, kernel: 8, padding: 0}]}}",
        "model.encoder.hidden=8",
    ],
    "stories260k": [
        "model.embedding={vocab: 16, dim: 8, std: 1.0}",
        "model.decoder={layers: 1, feed_forward: {hidden: 6}, attention: {heads: 2, kv_heads: 1}}",
    ],
    "sutskever-2014": [
        "model.source={vocab: 16, dim: 6}",
        "model.target={vocab: 12, dim: 6}",
        "model.encoder.hidden=5",
        "model.decoder.hidden=5",
    ],
}


TINY = [name for name in SPECS if name.endswith("-tiny")]


# Specs whose parts, except the model, are all in other specs. The law "compiles" has the models.
SAME_PARTS = {
    "audio-small": "ctc-attention-tiny",
    "bahdanau-2015": "ctc-attention-tiny",
    "bahdanau-reversal": "ctc-attention-tiny",
    "bahdanau-small": "ctc-attention-tiny",
    "deepspeech-ctc-tiny": "ctc-attention-tiny",
    "draw-tiny": "luong-2015",
    "bert-tiny": "transformer-tiny vit-tiny",
    "dynamic-memory-tiny": "ctc-attention-tiny",
    "g2p-en": "sutskever-2014 ctc-attention-tiny",
    "gatv2-tiny": "graph-small",
    "gpt2-tiny": "transformer-tiny vit-tiny",
    "graph-transformer-tiny": "graph-small transformer-tiny",
    "image-small": "transformer-tiny vit-tiny show-attend-tell-hard-tiny",
    "llama-tiny": "lm-small",
    "lstm-lm": "sutskever-2014",
    "memory-network-tiny": "luong-2015 graph-small",
    "minilm-tiny": "transformer-tiny vit-tiny",
    "ram-tiny": "luong-2015",
    "show-attend-tell-soft-tiny": "show-attend-tell-hard-tiny transformer-tiny",
    "speech-small": "ctc-attention-tiny",
    "stories260k": "lm-small",
    "tagger-small": "luong-2015",
    "text-small": "transformer-tiny",
    "transformer-ctc-tiny": "transformer-tiny ctc-attention-tiny",
}


def _compiles_elsewhere(name):
    """Whether the parts of a spec compile in the tests of other specs."""
    versions = (f"{name}-tiny", f"{name.rpartition('-')[0]}-tiny")
    has_tiny_version = name in SMALL and any(version in TINY for version in versions)
    return name in SAME_PARTS or has_tiny_version


COMPILED_PARTS = {"alignment", "backbone", "decoder", "embedding", "encoder", "position", "scorer"}


def _compiled_parts(name):
    blueprints = zoo.load_spec(name, overrides=SMALL.get(name, [])).root.walk()
    return {b.entry for b in blueprints if b.entry and b.entry.kind in COMPILED_PARTS}


@pytest.mark.parametrize("name", SAME_PARTS)
def test_the_parts_of_a_spec_that_is_not_compiled_are_in_other_specs(name):
    others = SAME_PARTS[name].split()
    assert not any(map(_compiles_elsewhere, others))
    assert _compiled_parts(name) <= set().union(*map(_compiled_parts, others))


# Published specs without a section `init`, and why.
DEFAULT_INIT = {
    "no scheme in the paper": {
        "deepspeech-ctc",
        "dnc-2016",
        "draw-mnist",
        "dynamic-memory-2016",
        "luo-2016",
        "ntm-copy",
        "ram-mnist",
        "ram-translated",
        "transformer-ctc",
    },
    "no weights are trained": {"ngram-lm"},
    "the model starts as the authors' program": {"cbow-2013", "skip-gram-2013"},
    "weights are imported": {"g2p-en", "nano-ocr", "stories260k"},
    "trains in seconds": {"bahdanau-reversal"},
}


def test_published_specs_state_how_their_papers_initialise_the_weights():
    found = {
        name
        for name in SPECS
        if not name.endswith("-tiny") and zoo.load_spec(name).sections.init is None
    }
    assert found == set().union(*DEFAULT_INIT.values())


@pytest.mark.parametrize("name", SPECS)
def test_every_spec_has_a_description_of_its_own(name):
    data = read_file(default_registry().spec(name)).data
    assert 10 <= len(data.get("description", "")) <= 300
    assert "\n" not in data["description"]


@pytest.mark.parametrize("name", SPECS)
def test_a_shipped_spec_checks_with_its_published_size(name):
    report = zoo.check(name)
    assert report.name == name
    assert report.parameters > 0
    reference = REFERENCES.get(name)
    if reference is not None:
        assert report.parameters == reference.parameters + reference.difference
        assert bool(reference.reason) == bool(reference.difference)


# Rows of table 3 of Vaswani et al. 2017: N, d_model, d_ff, parameters in millions.
TABLE_3 = [
    (6, 512, 2048, 65),
    (2, 512, 2048, 36),
    (4, 512, 2048, 50),
    (8, 512, 2048, 80),
    (6, 256, 2048, 28),
    (6, 1024, 2048, 168),
    (6, 512, 1024, 53),
    (6, 512, 4096, 90),
]


@pytest.mark.slow
def test_the_sizes_in_the_paper_of_the_transformer_agree_with_41000_entries():
    """The text has "about 37000 tokens", which give 63.1 M for the base model."""
    assert round(zoo.check("transformer-base").parameters / 1e6, 1) == 63.1
    for layers, width, hidden, millions in TABLE_3:
        part = f"{{layers: {layers}, feed_forward: {{hidden: {hidden}}}}}"
        source = f"model.source={{vocab: 41000, dim: {width}}}"
        overrides = [source, f"model.encoder={part}", f"model.decoder={part}"]
        parameters = zoo.check("transformer-base", overrides=overrides).parameters
        assert round(parameters / 1e6) == millions


@pytest.mark.parametrize("name", [*SMALL, *TINY])
def test_a_small_version_learns_generates_saves_and_compiles(name, tmp_path):
    overrides = SMALL.get(name, [])
    model = zoo.compose(name, overrides=overrides)
    spec = zoo.load_spec(name, overrides=overrides)
    batch = model.example(8, 5, torch.Generator().manual_seed(0))
    _assert_evaluation_does_not_sample(model, zoo.objective(spec), batch)
    assert _loss_decreases(model, zoo.objective(spec), batch)

    loaded = zoo.load(zoo.save(model, tmp_path / "model.safetensors")).eval()
    zoo.accelerate(model)  # as `load` does
    assert torch.equal(loaded(batch).logits, model(batch).logits)
    if spec.sections.sampler:
        sampler = spec.sections.sampler.build()
        tokens = model.generate(batch, sampler, max_length=9).tokens
        assert torch.equal(loaded.generate(batch, sampler, max_length=9).tokens, tokens)
    if not _compiles_elsewhere(name):
        _assert_compiles(model)


def _loss_decreases(model, objective, batch):
    """Whether training on one batch decreases the loss by a tenth within 40 steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    first = None
    for _ in range(40):
        outputs = model.eval()(batch)
        optimizer.zero_grad()
        objective.train()(outputs).backward()
        optimizer.step()
        loss = objective.eval()(outputs).item()
        first = loss if first is None else first
        if loss < 0.9 * first:
            return True
    return False


@torch.no_grad()
def _assert_evaluation_does_not_sample(model, objective, batch):
    """Check that the loss in evaluation is the same for all random seeds, and not negative."""
    losses = []
    for seed in range(2):
        torch.manual_seed(seed)
        losses.append(objective.eval()(model.eval()(batch)).item())
    assert losses[0] == losses[1] >= 0


def _assert_compiles(model):
    """Check a short example, because a decoder with a loop is compiled step by step."""
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(batch).logits, model(batch).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in [*SMALL, *TINY] if _compiles_elsewhere(name)])
def test_a_small_version_with_the_parts_of_other_specs_compiles(name):
    _assert_compiles(zoo.compose(name, overrides=SMALL.get(name, [])).eval())


@pytest.mark.parametrize("name", TINY)
def test_a_training_step_runs_on_the_meta_device(name):
    """A training step does not read tensor values, which would synchronise a GPU."""
    model = zoo.compose(name).to("meta").train()
    objective = zoo.objective(name).to("meta")

    objective(model(model.example(3, 5))).backward()

    assert all(p.grad.is_meta for p in model.parameters())


STARTERS = {
    "audio-small",
    "bahdanau-small",
    "gat-small",
    "graph-small",
    "image-small",
    "lm-small",
    "sentence-small",
    "text-regressor-small",
    "speech-small",
    "tagger-small",
    "text-small",
    "transformer-small",
}
"""Small specs to extend; they are not of a paper."""


PUBLISHED = {name for name in SPECS if not name.endswith(("-tiny", "-reversal"))} - STARTERS
ROWS = [model for model in CATALOGUE["models"] if model["name"] in PUBLISHED]


def test_the_catalogue_lists_every_published_spec():
    assert sorted(model["name"] for model in ROWS) == sorted(PUBLISHED)


def test_models_of_the_catalogue_that_are_not_specs_have_shipped_weights_and_name_their_recipe():
    others = [model for model in CATALOGUE["models"] if model["name"] not in PUBLISHED]
    assert [model["name"] for model in others if "shipped" not in model] == []
    for model in others:
        base = default_registry().spec(Path(model["spec"]).stem)
        assert base.samefile(ROOT / model["spec"])
        assert default_registry().recipe(model["shipped"]["recipe"]).stem == model["name"]


@pytest.mark.parametrize("model", ROWS, ids=lambda model: model["name"])
def test_a_catalogue_entry_is_complete_and_names_the_shipped_spec(model):
    required = {"name", "spec", "paper", "licence"}
    assert required <= set(model) <= required | {"weights", "shipped", "results"}
    assert all(isinstance(model[key], str) and model[key] for key in required)
    (listed,) = (
        entry for entry in read_catalogue(ROOT / "registry.yaml") if entry.name == model["name"]
    )
    path = ROOT / model["spec"]
    assert listed.spec_path() == path
    assert path.samefile(default_registry().spec(model["name"]))
    assert zoo.load_spec(path).name == model["name"]
