"""The report of what a training changes: from the first step on, and after a number of steps."""

import zoo

SPEC = """\
extends: gpt2-tiny
name: mine
preprocessing: {target: text}
train:
  data: {type: plain-text, files: texts.txt}
  optimiser: adamw
  batch: {items: 2, block: 8}
  freeze: [embedding, "decoder.{position,blocks.0}"]
  unfreeze: [{at: 6, match: [decoder.blocks.0]}, {at: 9, match: [embedding]}]
  steps: 50
"""


def _lines(tmp_path, *more):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC + "".join(f"  {line}\n" for line in more))
    return list(zoo.check(path).trained.lines())


def test_what_is_unfrozen_later_has_its_step_and_learning_rate(tmp_path):
    assert _lines(tmp_path) == [
        "trained: 2,256 parameters; frozen: 3,232",
        "also trained from step 7 on: decoder.blocks.0, 2,224 parameters",
        "  learning rate x 1: 2,224 parameters",
        "also trained from step 10 on: embedding, 496 parameters",
        "  learning rate x 1: 496 parameters",
    ]


def test_the_decay_by_depth_is_shown_of_what_is_unfrozen_later(tmp_path):
    assert _lines(tmp_path, "depth_decay: 0.9") == [
        "trained: 2,256 parameters; frozen: 3,232",
        "  learning rate x 1: 32 parameters",
        "  learning rate x 0.9: 2,224 parameters",
        "also trained from step 7 on: decoder.blocks.0, 2,224 parameters",
        "  learning rate x 0.81: 2,224 parameters",
        "also trained from step 10 on: embedding, 496 parameters",
        "  learning rate x 0.729: 496 parameters",
    ]


def test_the_report_is_that_of_the_first_step(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    trained = zoo.check(path).as_json()["trained"]
    assert (trained["parameters"], trained["frozen"]) == (2256, 3232)
    assert trained["later"] == ((6, 2256 + 2224), (9, 2256 + 2224 + 496))
    assert trained["rates"] == ()
    assert [each["at"] for each in trained["unfrozen"]] == [6, 9]
