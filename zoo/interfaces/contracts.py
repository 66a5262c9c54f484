"""Contracts: what a model outputs, and what objectives, samplers and metrics need of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from zoo.interfaces.data import Outputs

Targets = Literal["class", "multi-label", "value", "sequence"]
TARGETS: Mapping[Targets, str] = {
    "class": "class targets",
    "multi-label": "one target per logit",
    "value": "one number per logit",
    "sequence": "target sequences",
}
DECODING: Mapping[str, str] = {
    "step": "one token at a time",
    "frame": "all frames in parallel",
    "joint": "one token at a time with scores of the frames",
}
Prediction = Literal["text", "tokens", "entities", "labels", "values", "logprobs", "vectors"]
PREDICTIONS: Mapping[Prediction, str] = {
    "text": "text",
    "tokens": "token IDs",
    "entities": "entities of tags",
    "labels": "label sets",
    "values": "numbers",
    "logprobs": "log-probabilities",
    "vectors": "vectors of pairs",
}


VECTORS = ("source_vectors", "target_vectors")
"""Names of the extras with the vectors [B, D] of the two texts of a pair."""


@dataclass(frozen=True)
class OutputSchema:
    """Declares the outputs of a model, for the check of a spec.

    Attributes:
        logits: what a row of logits is for: "token", "frame", "item" (the whole input), "position"
            (of the input, for example a node), "pixel", "candidate" if the classes are
            candidates of the batch (negative samples), or "feature" if they are states of an
            encoder without a head, which no objective trains unless it asks for them.
        targets: "class": one class ID per row, [B, T]; "multi-label": one value from 0 to 1 per
            logit, [B, T, V]; "value": one number per logit, which the logit predicts, [B, T, V];
            "sequence": labels of another length, with a target_mask, [B, U].
        samples: whether `samples` is set in training.
        extras: names of the tensors in `extras`.
        auxiliary: the schema of each further head.
        optional: names of extras and heads that only some batches have.
        trained_by: groups of outputs ("samples", names of extras and heads); parameters that get no
            gradient from the logits get it if the objective uses one output of each group.
        decoding: how the model generates: "step" by the decoding loop, "frame" by frame samplers,
            "joint" by the decoding loop with scores of the frames.
        constants: values that the objective must agree with, such as the ID of the blank.
        in_batch: whether the outputs of an item depend on the other items of the batch (in-batch
            negatives), so that splitting a batch changes its loss.
    """

    logits: str
    targets: Targets = "class"
    samples: bool = False
    extras: tuple[str, ...] = ()
    auxiliary: Mapping[str, OutputSchema] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    trained_by: tuple[tuple[str, ...], ...] = ()
    decoding: tuple[str, ...] = ()
    constants: Mapping[str, int] = field(default_factory=dict)
    in_batch: bool = False

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """The inputs of metrics that can be computed: by decoding, or from the logits."""
        aligned = self.targets == "class"
        rows = self.logits in ("item", "position")
        available: dict[Prediction, bool] = {
            "text": bool(self.decoding),
            "tokens": bool(self.decoding) or aligned,
            "entities": self.logits == "position" and aligned,
            "labels": rows and self.targets in ("class", "multi-label"),
            "values": self.targets == "value",
            "logprobs": aligned and self.logits != "candidate",
            "vectors": set(VECTORS) <= set(self.extras),
        }
        return tuple(kind for kind, found in available.items() if found)


@dataclass(frozen=True)
class OutputRequirement:
    """Declares the outputs that an objective needs; by default nothing is known about them.

    Attributes:
        targets: the kind of targets, as in `OutputSchema`; None for any.
        logits: the kind of logits; None for any.
        extras: names of required extras.
        auxiliary: the requirement of each further head.
        optional: names of heads that may be missing in the outputs of some batches.
        uses: further outputs that are used if the model has them, such as "samples"; None if that
            is not known.
        constants: values that must be those of the model, if it declares them.
    """

    targets: Targets | None = None
    logits: str | None = None
    extras: tuple[str, ...] = ()
    auxiliary: Mapping[str, OutputRequirement] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    uses: tuple[str, ...] | None = None
    constants: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_declared(self) -> bool:
        return self != OutputRequirement()

    def problems(self, schema: OutputSchema, model: str) -> Iterator[str]:
        """Yield why the model's outputs do not fit: "needs ..., but model 'x' has ..."."""
        yield from self._missing(schema, model)
        used = {*self.extras, *self.auxiliary, *(self.uses or ())}
        for group in schema.trained_by:
            if self.uses is not None and used.isdisjoint(group):
                names = _join(group, "or")
                yield f"does not use {names}, so parts of {model} would get no gradient"

    def _missing(self, schema: OutputSchema, model: str) -> Iterator[str]:
        if schema.logits == "feature" and self.logits != "feature":
            yield f"needs the logits of a head, but {model} gives features without a head"
        elif self.targets not in (None, schema.targets) or self.logits not in (None, schema.logits):
            kind = f"{self.logits} logits" if self.logits else "logits"
            targets = TARGETS[self.targets or schema.targets]
            yield (
                f"needs {kind} with {targets}, but {model} has {schema.logits} logits with "
                f"{TARGETS[schema.targets]}"
            )
        missing = tuple(name for name in self.extras if name not in schema.extras)
        if missing:
            found = f"only {_join(schema.extras)}" if schema.extras else "none"
            yield f"needs {_join(missing)} in the extras, but {model} has {found}"
        for name, requirement in self.auxiliary.items():
            head = schema.auxiliary.get(name)
            if head is None:
                yield f"needs a further head '{name}', which {model} does not have"
            else:
                yield from requirement._missing(head, f"head '{name}' of {model}")
        for name, value in self.constants.items():
            if schema.constants.get(name, value) != value:
                yield f"has {name} {value}, but {model} has {name} {schema.constants[name]}"

    def check(self, outputs: Outputs) -> str | None:
        """Return what is missing in outputs, or None. Only shapes and names are read."""
        if not outputs.has_targets:
            return "needs targets, but the batch of the model had none"
        found = find_targets(outputs)
        if self.targets is not None and _SHAPES.get(self.targets, self.targets) != found:
            return (
                f"needs {TARGETS[self.targets or found]}, but targets are "
                f"{list(outputs.targets.shape)} and logits {list(outputs.logits.shape)}, "
                f"{'without' if outputs.target_mask is None else 'with'} target_mask"
            )
        for name in self.extras:
            if name not in outputs.extras:
                found_names = _join(tuple(sorted(outputs.extras))) or "nothing"
                return f"requires '{name}' in the model's extras, which contain {found_names}"
        for name, requirement in self.auxiliary.items():
            part = outputs.auxiliary.get(name)
            if part is None and name not in self.optional:
                heads = _join(tuple(sorted(outputs.auxiliary))) or "none"
                return f"needs a further head '{name}' of the model, which has {heads}"
            problem = None if part is None else requirement.check(part)
            if problem:
                return f"{problem}, in the head '{name}'"
        return None


_SHAPES: Mapping[Targets, Targets] = {"value": "multi-label"}
"""Kinds of targets with the shapes of another kind."""


def find_targets(outputs: Outputs) -> Targets | None:
    """Return the kind of the targets by their shape; None if it fits none.

    Numbers ("value") have the shape of multi-label targets.
    """
    if outputs.target_mask is not None:
        return "sequence"
    if outputs.targets.shape == outputs.logits.shape:
        return "multi-label"
    return "class" if outputs.targets.shape == outputs.logits.shape[:-1] else None


def _join(names: tuple[str, ...], word: str = "and") -> str:
    quoted = [f"'{name}'" for name in names]
    return f" {word} ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))
