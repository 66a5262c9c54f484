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
        return outputs.extras["anything"].sum()

    def reference(self, outputs):
        raise NotImplementedError


def test_parts_without_declarations_are_not_checked(tmp_path):
    registry = default_registry().with_components([Undeclared, UndeclaredLoss], plugin="mine")
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(section="objective: undeclared-loss", align="hard"))
    zoo.check(path, registry=registry)
    text = SPEC.format(section="objective: ctc\nmetrics: [micro-f1]", align="hard")
    path.write_text(text.replace("type: seq2seq", "type: undeclared"))
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
