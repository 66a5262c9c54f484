"""Messages about objectives, samplers, filters and metrics that do not fit the model."""

import pytest
import torch

import zoo
from zoo.hub.publish import write_model_card
from zoo.plugin import Objective
from zoo.registry.component_registry import default_registry
from zoo_metrics.accuracy import Accuracy
from zoo_seq2seq.seq2seq import Seq2Seq

SPEC = """\
zoo: 1
name: translation
model:
  type: seq2seq
  source: {{type: token, vocab: 9, dim: 8}}
  encoder: {{type: gru, hidden: 8}}
  decoder:
    type: attentive-rnn
    hidden: 8
    attention: {{scorer: {{type: additive, hidden: 8}}, align: {align}}}
{section}
"""


def _messages(tmp_path, section, align="soft", registry=None):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(section=section, align=align))
    with pytest.raises(zoo.SpecError) as caught:
        zoo.check(path, registry=registry)
    return [str(problem).removeprefix(f"{path}:") for problem in caught.value.problems]


def test_an_objective_of_frames_is_rejected_with_what_fits(tmp_path):
    assert _messages(tmp_path, "objective: ctc") == [
        (
            "11:12: objective: objective 'ctc' needs frame logits with target sequences, but model "
            "'seq2seq' has token logits with class targets; objectives that fit: cross-entropy, "
            "reinforce"
        )
    ]


def test_sampled_attention_needs_an_objective_that_uses_samples(tmp_path):
    assert _messages(tmp_path, "objective: cross-entropy", align="hard") == [
        (
            "11:12: objective: objective 'cross-entropy' does not use 'samples', so parts of model "
            "'seq2seq' would get no gradient (model.decoder.attention.align is 'hard'); objectives "
            "that fit: reinforce"
        )
    ]


def test_a_frame_sampler_is_rejected_with_what_fits(tmp_path):
    (message,) = _messages(tmp_path, "sampler: ctc-greedy")
    assert message.startswith(
        "11:10: sampler: sampler 'ctc-greedy' decodes all frames in parallel, but model 'seq2seq' "
        "generates one token at a time; samplers that fit: beam, "
    )


def test_every_problem_is_reported(tmp_path):
    messages = _messages(
        tmp_path, "sampler: ctc-greedy\nobjective: variational\nmetrics: [bleu, micro-f1]"
    )
    assert [message.split(": ")[1] for message in messages] == [
        "sampler",
        "objective",
        "objective",
        "metrics[1]",
    ]
    assert "metric 'micro-f1' takes label sets, but model 'seq2seq' gives text" in messages[-1]


@pytest.mark.parametrize(
    ("spec", "change", "message"),
    [
        ("vit-tiny", "sampler=greedy", "model 'classifier' does not generate; no sampler fits"),
        ("draw-tiny", "metrics=[bleu]", "model 'draw' gives none; no metric fits"),
        ("ram-tiny", "objective=cross-entropy", "does not use 'samples' or 'logprob'.*hybrid"),
        ("ctc-attention-tiny", "objective=cross-entropy", "does not use 'ctc'.*joint-ctc"),
        ("deepspeech-ctc-tiny", "objective.blank=3", "'ctc' has blank 3.*has blank 0"),
        ("gat-ppi", "objective=cross-entropy", "has position logits with one target per logit"),
    ],
)
def test_shipped_specs_with_a_part_that_does_not_fit_are_rejected(spec, change, message):
    with pytest.raises(zoo.SpecError, match=message):
        zoo.check(spec, overrides=[change])


def test_filters_are_rejected_with_a_frame_sampler():
    with pytest.raises(zoo.SpecError, match=r"filters\[0\].*'ctc-greedy', which decodes all"):
        zoo.check("nano-ocr", overrides=["filters=[{type: no-repeat-ngram, n: 2}]"])


def test_filters_with_tokens_outside_of_the_vocabulary_are_rejected():
    message = r"filters\[0\].*'forced-tokens' has token 9000000, out of range for a vocabulary of"
    with pytest.raises(zoo.SpecError, match=message):
        zoo.check(
            "transformer-tiny", overrides=["filters=[{type: forced-tokens, tokens: [4, 9000000]}]"]
        )


class Undeclared(Seq2Seq):
    name = "undeclared"

    def output_schema(self):
        return None


class UndeclaredLoss(Objective):
    name = "undeclared-loss"

    def forward(self, outputs):
        return outputs.get_extra("attention_weights", self.name).sum()

    def reference(self, outputs):
        raise NotImplementedError


def test_parts_without_declarations_are_run_on_an_example(tmp_path):
    registry = default_registry().with_components([Undeclared, UndeclaredLoss], plugin="mine")
    path = tmp_path / "spec.yaml"
    text = SPEC.format(section="objective: undeclared-loss\nmetrics: [micro-f1]", align="hard")
    text = text.replace("type: seq2seq", "type: undeclared")
    path.write_text(text.replace("model:", "model:\n  return_attention: true"))
    zoo.check(path, registry=registry)
    path.write_text(text)
    with pytest.raises(
        zoo.SpecError, match=r"11:12: objective: loss of an example failed: .*extra"
    ):
        zoo.check(path, registry=registry)


class BrokenLoss(UndeclaredLoss):
    name = "broken-loss"

    def required_outputs(self):
        raise KeyboardInterrupt("not declared")


class BrokenMetric(Accuracy):
    name = "broken-metric"
    consumes = "images"


def test_errors_of_a_plugin_are_reported_with_their_line(tmp_path):
    broken = [BrokenLoss, BrokenMetric]
    registry = default_registry().with_components(broken, plugin="mine")
    (message,) = _messages(tmp_path, "objective: broken-loss", registry=registry)
    assert message == "11:12: objective: required_outputs failed: KeyboardInterrupt: not declared"
    (message,) = _messages(tmp_path, "metrics: [broken-metric]", registry=registry)
    assert message.startswith("11:11: metrics[0]: metric 'broken-metric' takes images, but model")
    (message,) = _messages(tmp_path, "objective: ctc", registry=registry)
    assert message.endswith("objectives that fit: cross-entropy, reinforce")


def test_an_objective_takes_the_outputs_of_a_model():
    with pytest.raises(zoo.ZooError, match="takes the outputs of a model, but got Tensor"):
        zoo.objective("bahdanau-reversal")(torch.zeros(2, 3, 4))


def test_an_artifact_whose_sections_do_not_fit_still_loads(tmp_path):
    model = zoo.compose("bahdanau-reversal")
    spec = zoo.load_spec("bahdanau-reversal", overrides=["objective=ctc"])
    model.spec, model.providers = spec.resolve(), tuple(spec.providers())
    path = zoo.save(model, tmp_path / "model.safetensors")
    batch = model.example(2, 3, torch.Generator().manual_seed(0))
    torch.testing.assert_close(zoo.load(path)(batch).logits, model.eval()(batch).logits)
    write_model_card(tmp_path, "org/name")
    assert (tmp_path / "README.md").exists()


TRAIN = """\
metrics: [bleu]
preprocessing:
  source: {type: text, tokenizer: t.json}
  target: {type: text, tokenizer: t.json}
train:
  data: {type: parallel-text, file: train.tsv}
  validation: {type: parallel-text, file: val.tsv}
  optimiser: {type: adamw, lr: 0.01}
  batch: {items: 4}
  steps: 2
"""


def test_a_metric_of_text_needs_a_sampler_if_the_training_evaluates(tmp_path):
    section = TRAIN
    (message,) = _messages(tmp_path, f"objective: cross-entropy\n{section}")
    assert message == (
        "12:11: metrics[0]: metric 'bleu' takes generated text in the evaluation of the training, "
        "which needs a sampler; set, for example, 'sampler: greedy'"
    )
    for added in ("sampler: greedy\n", ""):
        own = "" if added else "  evaluate: {sampler: greedy}\n"
        text = SPEC.format(section=f"{added}objective: cross-entropy\n{section}{own}", align="soft")
        (tmp_path / "spec.yaml").write_text(text)
        zoo.check(tmp_path / "spec.yaml")


CLASSES = """\
zoo: 1
name: mood
model:
  type: classifier
  source: {{type: token, vocab: 9, dim: 8}}
  encoder: {{type: gru, hidden: 8}}
  pooling: summary
  classes: 3
objective:
  type: cross-entropy
  class_weights: {weights}
{target}
"""


@pytest.mark.parametrize(
    ("weights", "target", "message"),
    [
        ("[1, 2]", "", "class_weights has 2 weights, but the model has 3 classes"),
        ("[1, 2]", "preprocessing: {target: label}", "class_weights has 2 weights"),
        (
            "{god: 2}",
            "preprocessing: {target: {type: label, classes: [good, bad, none]}}",
            "class_weights names the class 'god'; did you mean 'good'?",
        ),
    ],
)
def test_weights_that_do_not_fit_the_classes_are_rejected(tmp_path, weights, target, message):
    path = tmp_path / "spec.yaml"
    path.write_text(CLASSES.format(weights=weights, target=target))
    with pytest.raises(zoo.SpecError) as caught:
        zoo.check(path)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{path}:11:18: objective.class_weights: {message}")


@pytest.mark.parametrize(
    ("weights", "target"),
    [
        ("[1, 2, 3]", ""),
        ("balanced", ""),
        ("balanced", "preprocessing: {target: label}"),
        ("{good: 2}", "preprocessing: {target: label}"),  # the data has the names
        ("{good: 2}", "preprocessing: {target: {type: label, classes: [good, bad, none]}}"),
    ],
)
def test_weights_that_can_fit_the_classes_are_accepted(tmp_path, weights, target):
    path = tmp_path / "spec.yaml"
    path.write_text(CLASSES.format(weights=weights, target=target))
    assert zoo.check(path).name == "mood"


JOINT = """\
zoo: 1
name: joint
model:
  type: ctc-attention
  source: {{type: dense, width: 4, dim: 8}}
  target: {{type: token, vocab: 9, dim: 8}}
  encoder: {{type: gru, hidden: 8}}
  decoder:
    type: attentive-rnn
    hidden: 8
    attention: {{scorer: {{type: additive, hidden: 8}}, align: soft}}
objective:
  type: joint-ctc
  attention: {{type: cross-entropy, class_weights: {weights}}}
"""


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("[1, 2]", "class_weights has 2 weights, but the model has 9 classes"),
        ("balanced", "class_weights is 'balanced', which 'zoo train' replaces"),
    ],
)
def test_an_objective_in_a_slot_is_run_on_an_example(tmp_path, weights, message):
    path = tmp_path / "spec.yaml"
    path.write_text(JOINT.format(weights=weights))
    with pytest.raises(zoo.SpecError) as caught:
        zoo.check(path)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{path}:14:51: objective.attention.class_weights: {message}")


class Unequal(zoo.Model):
    """Returns one target too many for its logits."""

    name = "unequal"

    def __init__(self) -> None:
        super().__init__()
        self.map = torch.nn.Linear(4, 3)

    def forward(self, batch):
        logits = self.map(batch["source"])
        return zoo.Outputs(logits, batch["target"], torch.ones_like(logits[..., 0]).bool())

    def example(self, batch, length, generator=None):
        target = torch.zeros(batch, length + 1, dtype=torch.long)
        return {"source": torch.zeros(batch, length, 4), "target": target}


def test_targets_of_another_length_than_the_logits_are_found_by_a_check():
    registry = default_registry().with_components([Unequal], plugin="third-party")
    data = {"zoo": 1, "name": "unequal", "model": "unequal", "objective": "cross-entropy"}
    with pytest.raises(zoo.SpecError, match=r"targets are \[2, 4\] and logits \[2, 3, 3\]"):
        zoo.check(data, registry=registry)


@pytest.mark.parametrize("section", ["", "train.evaluate."])
def test_a_beam_that_is_wider_than_the_vocabulary_is_rejected(tmp_path, section):
    wide = "sampler: {type: beam, width: 10}"
    if section:
        wide = (
            "train: {data: {type: parallel-text, file: a.tsv}, optimiser: {type: sgd, lr: 1}, "
            "steps: 1, evaluate: {" + wide + "}}\n"
            "preprocessing: {source: {type: text, tokenizer: t.json}, "
            "target: {type: text, tokenizer: t.json}}"
        )
    (message,) = _messages(tmp_path, wide)
    assert f"{section}sampler: sampler 'beam' needs a vocabulary of at least 10 tokens, but" in (
        message
    )


def test_the_sampler_of_evaluations_fits_the_model(tmp_path):
    (message,) = _messages(
        tmp_path,
        "train: {data: {type: parallel-text, file: a.tsv}, optimiser: {type: sgd, lr: 1}, "
        "steps: 1, evaluate: {sampler: ctc-greedy}}\n"
        "preprocessing: {source: {type: text, tokenizer: t.json}, "
        "target: {type: text, tokenizer: t.json}}",
    )
    assert "train.evaluate.sampler: sampler 'ctc-greedy' decodes all frames in parallel" in message


BLOCKS = """\
zoo: 1
name: blocks
extends: gpt2-tiny
preprocessing: {target: {type: text, tokenizer: t.json}}
train:
  data: {type: plain-text, files: a.txt}
  optimiser: {type: sgd, lr: 1}
  steps: 1
  batch:
    items: 2
    block: BLOCK
"""


def test_blocks_with_more_tokens_than_positions_are_rejected(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(BLOCKS.replace("BLOCK", "33"))
    with pytest.raises(zoo.SpecError) as caught:
        zoo.check(path)
    (problem,) = caught.value.problems
    assert str(problem) == (
        f"{path}:11:12: train.batch.block: is 33, but model 'language-model' has 32 positions "
        "(model.decoder.position)"
    )
    path.write_text(BLOCKS.replace("BLOCK", "32"))
    assert zoo.check(path).name == "blocks"
