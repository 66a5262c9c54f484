"""Plans of small specs."""

import math

import pytest

import zoo
from zoo.errors import ZooError
from zoo.spec.composition import build_on_meta
from zoo.training.inherited import read_started
from zoo_lab.plan.memory_plan import make_batch, make_plan
from zoo_lab.plan.plan_options import parse_batch, parse_devices

SPEC = "gpt2-tiny"


def _plan(devices, batch="4x8", source=SPEC, **options):
    return make_plan(source, parse_devices(devices), batch=parse_batch(batch), **options)


@pytest.fixture(scope="module")
def single():
    return _plan("single")


def test_weights_gradients_and_the_state_of_adam(single):
    weights = list(zoo.compose(SPEC).parameters())
    rounded = sum(512 * math.ceil(weight.numel() / 128) for weight in weights)
    assert single.sizes["weights"] == single.sizes["gradients"] == rounded
    assert single.sizes["optimiser"] == 2 * rounded + 512 * len(weights)
    assert single.total == sum(single.at_peak.values())


def test_activations_grow_with_the_batch(single):
    double = _plan("single", "8x8")
    assert 1.3 < double.sizes["activations"] / single.sizes["activations"] < 2
    assert double.sizes["weights"] == single.sizes["weights"]


def test_bfloat16_copies_weights_and_has_smaller_activations(single):
    half = _plan("single", precision="bfloat16")
    assert 0 < half.at_peak["bfloat16 weights"] < half.sizes["weights"]
    assert half.sizes["activations"] < single.sizes["activations"]
    assert half.settings["precision"] == "bfloat16 (option)"


def test_fsdp_with_the_layers_as_blocks():
    model = zoo.compose(SPEC)

    def rounded(tensors):
        return sum(512 * math.ceil(tensor.numel() / 128) for tensor in tensors)

    inside = {weight for layer in model.decoder.blocks for weight in layer.parameters()}
    outside = rounded(weight for weight in model.parameters() if weight not in inside)
    block = rounded(model.decoder.blocks[0].parameters())
    plan = make_plan(
        SPEC,
        parse_devices("fsdp:4"),
        overrides=["objective.smoothing=0.2"],
        batch=parse_batch("1x4"),
    )
    assert plan.at_peak["gathered weights"] == outside + 2 * block
    trained = sum(4 * weight.numel() for weight in model.parameters())
    assert plan.communication["reduce-scatter"] == 3 * trained // 4


def test_sharded_and_compiled_models_keep_the_logits():
    overrides = ["model.embedding.vocab=2048"]
    single = _plan("single", "4x32", _training(), overrides=overrides)
    logits = 4 * 31 * 2048 * 4
    assert single.sizes["activations"] < logits
    compiled = _plan("single", "4x32", _training(compile=True), overrides=overrides)
    for plan in (compiled, _plan("fsdp:2", "4x32", _training(), overrides=overrides)):
        assert plan.sizes["activations"] >= single.sizes["activations"] + logits
    copied = _plan("ddp:2", "4x32", _training(), overrides=overrides)
    assert copied.sizes["activations"] == single.sizes["activations"]


def test_source_and_target_have_their_own_lengths():
    model = build_on_meta(zoo.load_spec("transformer-tiny")).part
    batch = make_batch(model, parse_batch("4x8x5"))
    assert batch["source"].shape == (4, 8)
    assert batch["target"].shape == (4, 5)


def test_a_second_length_needs_a_source_and_a_target():
    with pytest.raises(ZooError, match=r"'language-model' has one length, but the batch 2x8x8"):
        _plan("single", "2x8x8")


def test_a_batch_that_the_model_cannot_process():
    with pytest.raises(ZooError, match=r"batch of 2x1000 failed: .*32; set another batch"):
        _plan("single", "2x1000")


def test_defaults_are_stated(single):
    assert single.settings == {
        "batch": "option",
        "optimiser": "adamw (default)",
        "precision": "float32 (default)",
        "accumulate": "1 (default)",
    }


@pytest.mark.parametrize("name", ["deepspeech-ctc-tiny", "gat-tiny", "memory-network-tiny"])
def test_models_that_read_values_are_planned(name):
    assert _plan("single", "2x4", name).sizes["activations"] > 0


@pytest.mark.slow
def test_nothing_is_allocated():
    """The weights of llama-7b take 27 GB."""
    plan = _plan("fsdp:64", "1x64", "llama-7b")
    assert plan.sizes["weights"] > 25e9 / 64


def _training(**train):
    data = {"type": "plain-text", "files": "x.txt"}
    batch = {"items": 4, "block": 8}
    return {
        "extends": SPEC,
        "zoo": 1,
        "name": "tuned",
        "preprocessing": {"target": "text"},
        "train": {"data": data, "optimiser": "adamw", "batch": batch, "steps": 5, **train},
    }


def test_only_what_is_trained_has_gradients_and_a_state():
    whole = _plan("single", source=_training())
    frozen = _plan("single", source=_training(freeze=["embedding", "decoder.position"]))
    tables = 512 * (math.ceil(31 * 16 / 128) + math.ceil(32 * 16 / 128))
    assert frozen.sizes["weights"] == whole.sizes["weights"]
    assert whole.sizes["gradients"] - frozen.sizes["gradients"] == tables
    assert whole.sizes["optimiser"] - frozen.sizes["optimiser"] == 2 * tables + 2 * 512
    assert frozen.settings["freeze"] == "embedding, decoder.position (train)"


def _adapter_spec(**train):
    style = {"type": "lora", "rank": 2, "targets": ["*.{query,value}"]}
    return _training(**train) | {"adapters": {"style": style}}


def _rounded(model, names):
    weights = model.named_parameters()
    return sum(512 * math.ceil(w.numel() / 128) for name, w in weights if name.startswith(names))


def test_only_adapters_have_gradients():
    model = zoo.compose(_adapter_spec())
    plan = _plan("single", source=_adapter_spec())
    assert plan.sizes["gradients"] == _rounded(model, "adapters.") > 0
    assert plan.sizes["weights"] == _rounded(model, "")


def test_parts_that_an_adapter_does_not_take_from_its_base_have_gradients(tmp_path):
    file = zoo.save(zoo.compose(SPEC), tmp_path / "base.safetensors")
    parts = {"decoder.blocks": "decoder.blocks", "embedding": "embedding"}
    spec = _adapter_spec(start={"weights": str(file), "parts": parts})
    record = read_started(spec).record
    model = zoo.compose(spec)
    trained = _rounded(model, "") - _rounded(model, ("decoder.blocks.", "embedding."))
    assert trained > _rounded(model, "adapters.")
    assert _plan("single", source=spec, start=record).sizes["gradients"] == trained


def test_the_plan_is_that_of_the_steps_after_everything_is_unfrozen():
    freeze = {"freeze": ["embedding", "decoder.blocks"]}
    later = {"unfreeze": [{"at": 2, "match": ["decoder.blocks.1"]}]}
    first, last = (_plan("single", source=_training(**e)) for e in (freeze, freeze | later))
    same = _training(freeze=["embedding", "decoder.blocks.0"])
    assert last.sizes == _plan("single", source=same).sizes
    assert last.sizes["gradients"] > first.sizes["gradients"]
    assert last.settings["unfreeze"].startswith("decoder.blocks.1 after step 2 (train; ")


def test_frozen_weights_are_gathered_but_not_reduced():
    whole = _plan("fsdp:4", source=_training()).communication
    frozen = _plan("fsdp:4", source=_training(freeze=["embedding"])).communication
    assert frozen["all-gather"] == whole["all-gather"]
    assert frozen["reduce-scatter"] < whole["reduce-scatter"]


def test_activations_below_what_is_trained_are_not_kept():
    top = {"freeze": ["embedding", "decoder.position", "decoder.blocks.0"]}
    whole, frozen = (_plan("single", source=_training(**each)) for each in ({}, top))
    assert frozen.sizes["activations"] < 0.8 * whole.sizes["activations"]


def test_blocks_that_are_computed_again_keep_their_inputs_only():
    whole = _plan("single", "4x32", source=_training())
    less = _plan("single", "4x32", source=_training(checkpointing=True))
    inputs = 2 * 4 * 31 * 16 * 4
    assert less.sizes["activations"] < whole.sizes["activations"] / 2
    assert less.sizes["activations"] > inputs
    assert less.total < whole.total
    half = _plan("single", "4x32", source=_training(checkpointing=True), precision="bfloat16")
    assert half.sizes["activations"] < whole.sizes["activations"] / 2
