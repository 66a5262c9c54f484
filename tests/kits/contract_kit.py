"""Small models with every kind of outputs, and predictions for every kind of metric."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from zoo import Model
from zoo.interfaces.contracts import OutputSchema
from zoo.plugin import Sampler
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.testing.configuration import configurations
from zoo.testing.laws.contracts import SAMPLERS
from zoo.testing.laws.helpers import example_batch
from zoo.testing.run import rejection_reason
from zoo.testing.tiny import PLUGIN, TINY_COMPONENTS

REGISTRY: ComponentRegistry = default_registry().with_components(TINY_COMPONENTS, plugin=PLUGIN)
_TOKENS = {"type": "token", "vocab": 9, "dim": 8}
_HARD: dict[str, Any] = {
    "type": "attentive-rnn",
    "hidden": 8,
    "attention": {"scorer": {"type": "additive", "hidden": 8}, "align": "hard"},
}
_STOCHASTIC = {
    "source": _TOKENS,
    "target": _TOKENS,
    "encoder": {"type": "gru", "hidden": 8},
    "decoder": _HARD,
}
FURTHER: dict[str, dict[str, Any]] = {
    "seq2seq, hard": {"type": "seq2seq", **_STOCHASTIC},
    "seq2seq, hard, attention": {"type": "seq2seq", **_STOCHASTIC, "return_attention": True},
    "seq2seq, soft, attention": {
        "type": "seq2seq",
        **_STOCHASTIC,
        "decoder": {**_HARD, "attention": {**_HARD["attention"], "align": "soft"}},
        "return_attention": True,
    },
    "ctc-attention, hard": {"type": "ctc-attention", **_STOCHASTIC},
}


def model_parts() -> dict[str, dict[str, Any]]:
    """Return a model section for every model, and for each configuration with other outputs."""
    parts = dict(FURTHER)
    for entry in default_registry().components("model"):
        schemas: list[OutputSchema | None] = []
        for config in configurations(entry.cls):
            if rejection_reason(config) is None:
                schema = config.build().output_schema()
                if schema not in schemas:
                    schemas.append(schema)
                    label = ", ".join(filter(None, [entry.name, config.label]))
                    parts[label] = {**config.data, "type": entry.name}
    return parts


SIDES = ("source", "target")


def predict(model: Model, consumes: str) -> tuple[list[Any], list[Any]]:
    """Return predictions and references of the model's example, in the form a metric consumes."""
    batch = example_batch(model)
    schema = model.output_schema()
    assert schema is not None
    outputs = model.eval()(batch)
    if schema.decoding and consumes in ("text", "tokens"):
        sampler: Sampler = SAMPLERS[schema.decoding[0]]
        tokens = model.generate(batch, sampler, max_length=4).best()
        references = outputs.targets.tolist()
        if consumes == "tokens":
            return tokens, references
        return [_words(row) for row in tokens], [[_words(row)] for row in references]
    if consumes == "vectors":
        first, second = (outputs.extras[f"{side}_vectors"].tolist() for side in SIDES)
        return first, second
    rows, targets = outputs.logits[outputs.mask], outputs.targets[outputs.mask]
    if consumes == "values":
        return rows.tolist(), targets.tolist()
    if consumes == "entities":
        labels = rows.argmax(dim=-1).tolist(), targets.tolist()
        predicted, expected = ([[(f"x{label}", 0, 1)] for label in each] for each in labels)
        return predicted, expected
    if consumes == "logprobs":
        logprobs = rows.log_softmax(dim=-1).gather(-1, targets[:, None])
        return logprobs.tolist(), targets[:, None].tolist()
    if targets.dim() == 2:
        return _label_sets(rows > 0), _label_sets(targets > 0)
    return rows.argmax(dim=-1, keepdim=True).tolist(), targets[:, None].tolist()


def _words(tokens: list[int]) -> str:
    return " ".join(f"w{token}" for token in tokens)


def _label_sets(labels: Tensor) -> list[list[int]]:
    return [row.nonzero()[:, 0].tolist() for row in labels]
