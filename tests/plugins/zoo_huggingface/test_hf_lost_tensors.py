"""What an import leaves out is named, and what transformers initialises after an export too."""

import copy

import pytest
import torch
import transformers as hf
from hf_model_kit import compare_logits, import_and_load, randomize
from hf_models import MODELS
from hf_switch_kit import ARCHITECTURES, IMPORTERS

from zoo_exchange.export_plan import plan_export
from zoo_exchange.import_plan import plan_import

IN_EACH_RUN = ("bert", "vit", "wav2vec2")
"""Architectures with heads that are left out; the others are compared with -m slow."""
_POOLERS = ("pooler.dense.", "pooler.weight")
_POSITIONS = ("position_embeddings.weight", "embed_positions.weight")
SHIFTED = ("roberta", "xlm-roberta", "camembert", "mpnet", "opt", "bart", "mbart")
SHIFTED += ("vision-encoder-decoder",)
"""Models whose tables of positions begin with two rows that no token has."""


def models(name):
    """Yield a model of each class of an importer, and one without its pooler."""
    own = [(cls, config) for cls, config in MODELS.values() if config.model_type == name]
    known = [cls.__name__ for cls, _ in own]
    others = (each for each in IMPORTERS[name].model_classes if each not in known)
    for cls, config in [*own, *((getattr(hf, each), own[0][1]) for each in others)]:
        torch.manual_seed(0)
        model = randomize(name, cls(copy.deepcopy(config)))
        yield model
        is_pooled = any(key.startswith(_POOLERS) for key in model.state_dict())
        if is_pooled and cls.__name__.endswith("Model"):
            yield cls(copy.deepcopy(config), add_pooling_layer=False)


def convert(theirs, folder):
    """Return the plans of an import and of an export, which is written to ``folder / "out"``."""
    theirs.save_pretrained(folder / "theirs")
    imported = plan_import(folder / "theirs")
    exported = plan_export(imported.write(folder / "model.safetensors"))
    exported.write(folder / "out")
    return imported, exported


def named(notes):
    """Return the names of tensors in notes."""
    return {word.rstrip(",") for note in notes for word in note.split()}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=() if each in IN_EACH_RUN else pytest.mark.slow)
        for each in ARCHITECTURES
    ],
)
def test_every_tensor_is_exported_or_named(name, tmp_path):
    for number, theirs in enumerate(models(name)):
        imported, exported = convert(theirs, tmp_path / str(number))
        out = tmp_path / str(number) / "out"
        again, info = type(theirs).from_pretrained(out, output_loading_info=True)
        lost = named(exported.notes)
        found, expected = again.state_dict(), theirs.state_dict()
        for key, tensor in expected.items():
            if key not in lost:
                values = [found[key], tensor]
                if name in SHIFTED and key.endswith(_POSITIONS):
                    values = [table[2:] for table in values]
                torch.testing.assert_close(*values, atol=1e-6, rtol=0, msg=key)
        assert named(imported.notes) & expected.keys() <= lost
        assert {key for key in expected if key in info["missing_keys"]} <= lost | computed(again)


def computed(model):
    """Return the names of tables that transformers computes."""
    return {name for name in model.state_dict() if "embed_positions" in name}


LOST = {
    "BertForPreTraining": ("the head that predicts the next sentence", "cls.seq_relationship.bias"),
    "AlbertForPreTraining": (
        "the head that predicts the order of sentences", "sop_classifier.classifier.weight",
    ),
    "Wav2Vec2ForPreTraining": ("the quantiser of pretraining", "quantizer.codevectors"),
    "Wav2Vec2ForCTC": ("the vector of masked frames in training", "wav2vec2.masked_spec_embed"),
}  # fmt: skip


@pytest.mark.parametrize("model_class", LOST)
def test_heads_that_are_left_out_are_named_with_their_purpose(model_class, tmp_path):
    purpose, tensor = LOST[model_class]
    cls = getattr(hf, model_class)
    config = MODELS[cls.config_class.model_type][1]
    imported, exported = convert(cls(copy.deepcopy(config)), tmp_path)
    for notes in (imported.notes, exported.notes):
        (note,) = (each for each in notes if purpose in each)
        assert tensor in named([note])


def test_the_mask_token_of_dinov2_is_named(tmp_path):
    config = copy.deepcopy(MODELS["dinov2"][1])
    config.use_mask_token = True
    imported, _ = convert(hf.Dinov2ForImageClassification(config), tmp_path)
    (note,) = imported.notes
    assert "dinov2.embeddings.mask_token, the vector of masked patches in pretraining" in note


@pytest.mark.parametrize("name", ["vit-features", "deit-features"])
def test_the_pooler_of_an_image_encoder_is_imported_and_exported(name, tmp_path):
    cls, config = MODELS[name]
    torch.manual_seed(0)
    theirs = randomize(name, cls(copy.deepcopy(config)))
    imported, exported = convert(theirs, tmp_path)
    assert imported.notes == list(exported.notes) == []
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    actual, expected = compare_logits(name, ours, theirs)
    assert ours.pooler is not None
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("changes", [{"pooler_act": "relu"}, {"pooler_output_size": 6}])
def test_another_pooler_of_an_image_encoder_is_named(changes, tmp_path):
    cls, config = MODELS["vit-features"]
    theirs = cls(type(config)(**{**config.to_diff_dict(), **changes}))
    imported, exported = convert(theirs, tmp_path)
    assert {"pooler.dense.weight", "pooler.dense.bias"} <= named(imported.notes)
    assert {"pooler.dense.weight", "pooler.dense.bias"} <= named(exported.notes)
