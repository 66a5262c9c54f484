"""The pass that is looked at: one input, with a generated, forced or no output, as a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zoo.data.preprocessing import build_preprocessors
from zoo.errors import ZooError
from zoo.generation.pipeline import ComponentSpec, generate
from zoo.generation.prediction import prediction_batch
from zoo.generation.raw_inputs import model_device
from zoo.generation.text_inputs import encode_batch, encode_prompt, get_tokenizer
from zoo.interfaces import Filter, Model, Preprocessor, Sampler
from zoo.interfaces.embedding import to_eos_ids
from zoo.registry.component_registry import ComponentRegistry

TARGET, PROMPT = "target", "prompt"
MAX_LENGTH = 64


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The output that is looked at; see `zoo.attend`."""

    output: str | Sequence[int] | None = None
    sampler: ComponentSpec | Sampler | None = None
    filters: Sequence[ComponentSpec | Filter] | None = None
    prompt: str | Sequence[int] | None = None
    max_length: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Pass:
    """A batch of one item, and what it was made from.

    Args:
        batch: the input of the model, with the output as targets.
        inputs: the values by role.
        preprocessors: those of the model, by key of the batch.
        output: the tokens of the output, without start and end tokens; None without an output.
        is_generated: whether the model generated the output.
        reads_target: whether the model reads the targets, one step behind its outputs.
    """

    batch: Mapping[str, Tensor]
    inputs: Mapping[str, Any]
    preprocessors: Mapping[str, Preprocessor] = field(default_factory=dict)
    output: Sequence[int] | None = None
    is_generated: bool = False
    reads_target: bool = False


def prepare_pass(
    model: Model, value: Any, options: OutputOptions, registry: ComponentRegistry | None
) -> Pass:
    """Return the pass of one input; a model that generates does so, unless the output is given."""
    preprocessors = build_preprocessors(model, registry=registry)
    if model.generation_input is None:
        if options != OutputOptions():
            raise ZooError(
                f"model '{model.name}' does not generate, so it has no output, sampler or prompt"
            )
        inputs = value if isinstance(value, Mapping) else {_first_key(model): value}
        raw = {k: p for k, p in preprocessors.items() if k in inputs and _is_ids(inputs[k])}
        encoding = {key: p for key, p in preprocessors.items() if key not in raw}
        example = inputs if raw or _is_ids(value) else value
        return Pass(prediction_batch(model, encoding, [example]), inputs, preprocessors)
    batch = encode_batch(model, [value], registry)
    is_prompt = model.generation_input == PROMPT
    tokens, ended, is_generated = _find_output(model, value, options, preprocessors, registry)
    prefix = batch.pop(PROMPT)[0].tolist() if is_prompt else _target_prefix(model, options)
    target = _build_target(model, prefix, tokens or [], ended=ended or is_prompt)
    return Pass(
        {**batch, TARGET: torch.tensor([target], device=model_device(model))},
        {model.generation_input: value},
        preprocessors,
        tokens,
        is_generated,
        "step" in _decoding(model),
    )


def _find_output(
    model: Model,
    value: Any,
    options: OutputOptions,
    preprocessors: Mapping[str, Preprocessor],
    registry: ComponentRegistry | None,
) -> tuple[list[int] | None, bool, bool]:
    """Return the tokens of the output, whether it has ended, and whether it was generated.

    The prompt of a language model is not continued unless that is asked for.
    """
    if options.output is not None:
        return _encode_output(model, options.output, preprocessors), True, False
    asked = any(v is not None for v in (options.sampler, options.max_length, options.seed))
    if model.generation_input == PROMPT and not asked:
        return None, True, False
    max_length = options.max_length or MAX_LENGTH
    (hypotheses,) = generate(
        model,
        [value],
        sampler=options.sampler,
        filters=options.filters,
        prompt=options.prompt,
        max_length=max_length,
        seed=options.seed,
        registry=registry,
    )
    tokens = hypotheses[0].tokens
    return tokens, len(tokens) < max_length, True


def _encode_output(
    model: Model, output: str | Sequence[int], preprocessors: Mapping[str, Preprocessor]
) -> list[int]:
    if not isinstance(output, str):
        return [int(token) for token in output]
    preprocessor, tokenizer = preprocessors.get(TARGET), get_tokenizer(model, TARGET)
    if tokenizer is None:
        raise ZooError(
            f"model '{model.name}' has no tokenizer for its output; pass it as token IDs (command "
            "line: --ids)"
        )
    if preprocessor is not None and preprocessor.content == "text":
        return np.asarray(preprocessor.encode(output)).tolist()
    return tokenizer.encode_plain([output], (model.batch_schema() or {})[TARGET])[0]


def _target_prefix(model: Model, options: OutputOptions) -> list[int]:
    """Return the tokens before the output of a model with a source: bos and the prompt."""
    prefix = list((model.batch_schema() or {})[TARGET].prefix)
    if options.prompt is None:
        return prefix
    return prefix[:1] + encode_prompt(model, options.prompt, 1)[PROMPT][0].tolist()


def _build_target(
    model: Model, prefix: Sequence[int], tokens: Sequence[int], *, ended: bool
) -> list[int]:
    """Return the targets; the end token is the target of the last step."""
    suffix = (model.batch_schema() or {})[TARGET].suffix or to_eos_ids(model.eos)[:1]
    if "step" not in _decoding(model):  # the labels of frames have no end
        return [*prefix, *tokens] or [0]
    return [*prefix, *tokens, *(suffix if ended else ())]


def _decoding(model: Model) -> tuple[str, ...]:
    schema = model.output_schema()
    return () if schema is None else schema.decoding


def _first_key(model: Model) -> str:
    schema = model.batch_schema(inference=True) or {}
    return next((key for key, field in schema.items() if not field.optional), "source")


def _is_ids(value: Any) -> bool:
    """Return whether a value is a list of token IDs, which needs no preprocessor."""
    return isinstance(value, list | tuple) and all(isinstance(token, int) for token in value)
