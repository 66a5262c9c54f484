"""What a training changes: frozen parameters, and what is unfrozen later."""

import pytest
from torch import nn

import zoo
from zoo.spec.trainability import set_trained

SPEC = """\
extends: gpt2-tiny
name: mine
preprocessing: {target: text}
train:
  data: {type: plain-text, files: texts.txt}
  optimiser: adamw
  batch: {items: 2, block: 8}
  steps: 50
"""


@pytest.fixture
def problems(tmp_path):
    def problems(*lines):
        path = tmp_path / "spec.yaml"
        path.write_text(SPEC + "".join(f"  {line}\n" for line in lines))
        with pytest.raises(zoo.SpecError) as caught:
            zoo.check(path)
        return [
            (each.place.line, each.path, each.message.partition(" (")[0])
            for each in caught.value.problems
        ]

    return problems


def test_patterns_that_match_nothing_are_reported_with_their_lines(problems):
    found = problems(
        "freeze:",
        "  - embedding",
        "  - decoder.block.{0..1}",
        "groups: [{match: [head], lr_factor: 0.1}]",
        "checkpointing: [blocks]",
    )
    assert [(line, path, message.partition(";")[0]) for line, path, message in found] == [
        (11, "train.freeze[1]", "'decoder.block.{0..1}' matches nothing in the model"),
        (12, "train.groups[0].match[0]", "'head' matches nothing in the model"),
        (13, "train.checkpointing[0]", "'blocks' matches nothing in the model"),
    ]
    assert "did you mean 'decoder.blocks" in found[0][2]


def test_a_training_needs_something_to_train(problems):
    everything = "all parameters are frozen, so there is nothing to train"
    assert problems('freeze: ["*"]') == [(9, "train.freeze", everything)]


def test_only_what_is_frozen_is_unfrozen_and_before_the_end(problems):
    weight = "decoder.blocks.1.attention.query.weight"
    unfrozen = f"'{weight}' is not frozen; 'unfreeze' lists what 'freeze' has frozen"
    assert problems(
        "freeze: [embedding]",
        "unfreeze: [{at: 10, match: [embedding]}, {at: 60, match: [decoder.blocks.1]}]",
    ) == [
        (10, "train.unfreeze[1].at", "is 60, but the training has 50 steps"),
        (10, "train.unfreeze[1].match", unfrozen),
    ]
    assert problems("unfreeze: [{at: 10, match: [embedding]}]")[0][1] == "train.unfreeze"


def _trained(model):
    return {name.partition(".")[0] for name, p in model.named_parameters() if p.requires_grad}


def test_parameters_are_unfrozen_by_the_number_of_steps(tmp_path):
    path = tmp_path / "spec.yaml"
    freeze = "  freeze: [embedding, decoder.blocks]\n"
    later = "  unfreeze: [{at: 5, match: [decoder.blocks.1]}, {at: 9, match: [embedding]}]\n"
    path.write_text(SPEC + freeze + later)
    training = zoo.load_spec(path).sections.train.build()
    model = zoo.compose("gpt2-tiny")
    blocks = model.decoder.blocks
    for step, embedding, last in ((0, False, False), (5, False, True), (9, True, True), (5, 0, 1)):
        set_trained(model, training, step)
        assert model.embedding.table.weight.requires_grad == embedding
        assert all(p.requires_grad == last for p in blocks[1].parameters())
        assert blocks[1].training == bool(last)
        assert not blocks[0].training
        assert not any(p.requires_grad for p in blocks[0].parameters())


def test_frozen_parts_stay_in_evaluation_mode():
    model = zoo.compose("vit-tiny")
    model.norm = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5))
    assert zoo.freeze(model, ["norm", "encoder.blocks.{0..0}"])[-2:] == [
        "norm.0.weight",
        "norm.0.bias",
    ]
    for _ in range(2):
        assert not any(module.training for module in model.norm.modules())
        assert not any(module.training for module in model.encoder.blocks[0].modules())
        assert model.training
        assert model.encoder.blocks[1].dropout.training
        model.train()
    model.eval()
    assert not any(module.training for module in model.modules())


def test_a_model_without_trained_parameters_can_be_in_training_mode():
    model = zoo.compose("vit-tiny").requires_grad_(False).train()
    assert all(module.training for module in model.modules())


def test_tied_parameters_are_frozen_by_either_path():
    model = zoo.compose("transformer-tiny")
    frozen = zoo.freeze(model, ["decoder.output"])
    assert frozen == ["decoder.output.embedding.table.weight"]
    assert not model.source.table.weight.requires_grad


def test_freezing_rejects_what_leaves_nothing_to_train():
    model = zoo.compose("gpt2-tiny")
    with pytest.raises(zoo.ZooError, match="nothing to train"):
        zoo.freeze(model, ["*"])
    with pytest.raises(zoo.ZooError, match="expected a list of patterns"):
        zoo.freeze(model, "decoder")
    assert all(p.requires_grad for p in model.parameters())
