"""Models, objectives and samplers whose declarations are wrong, and the valid ones."""

from dataclasses import replace
from typing import ClassVar

from zoo import Batch, Outputs
from zoo.plugin import OutputRequirement, OutputSchema
from zoo_ctc.ctc_greedy import CtcGreedy
from zoo_objectives.cross_entropy import CrossEntropy
from zoo_objectives.reinforce import Reinforce
from zoo_ram.ram import RAM
from zoo_seq2seq.seq2seq import Seq2Seq
from zoo_show_attend_tell.doubly_stochastic import DoublyStochastic


class DeclaresOtherTargets(Seq2Seq):
    def output_schema(self) -> OutputSchema:
        return replace(super().output_schema(), targets="multi-label")


class DeclaresMissingExtra(Seq2Seq):
    def output_schema(self) -> OutputSchema:
        return replace(super().output_schema(), extras=("kl",))


class HidesUntrainedParts(RAM):
    def output_schema(self) -> OutputSchema:
        return replace(super().output_schema(), trained_by=())


class DependsOnOtherItems(Seq2Seq):
    def forward(self, batch: Batch) -> Outputs:
        outputs = super().forward(batch)
        return replace(outputs, logits=outputs.logits - outputs.logits.mean(dim=0))


class DeclaresFrames(Seq2Seq):
    def output_schema(self) -> OutputSchema:
        return replace(super().output_schema(), decoding=("step", "frame"))


class FramesDeclaredAsSteps(CtcGreedy):
    decoding: ClassVar[str] = "step"


class NeedsMoreThanDeclared(DoublyStochastic):
    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", uses=())


class NeedsLessThanDeclared(CrossEntropy):
    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", extras=("kl",), uses=())


class HidesItsUseOfSamples(Reinforce):
    def required_outputs(self) -> OutputRequirement:
        return OutputRequirement(targets="class", uses=())


# (law, broken component, valid component)
BROKEN = [
    ("declared-outputs", DeclaresOtherTargets, Seq2Seq),
    ("declared-outputs", DeclaresMissingExtra, Seq2Seq),
    ("declared-outputs", HidesUntrainedParts, RAM),
    ("independent-items", DependsOnOtherItems, Seq2Seq),
    ("declared-decoding", DeclaresFrames, Seq2Seq),
    ("declared-decoding", FramesDeclaredAsSteps, CtcGreedy),
    ("declared-requirement", NeedsMoreThanDeclared, DoublyStochastic),
    ("declared-requirement", NeedsLessThanDeclared, CrossEntropy),
    ("declared-requirement", HidesItsUseOfSamples, Reinforce),
]
