"""The pass that is looked at: one input, with a generated, forced or no output, as a batch."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zoo.data.preprocessing import build_preprocessors
from zoo.errors import ZooError, ZooWarning
from zoo.generation.pipeline import ComponentSpec, build_request, generate_batch
from zoo.generation.prediction import prediction_batch
from zoo.generation.raw_inputs import encode_inputs, model_device
from zoo.generation.text_inputs import describe_unknown, encode_batch, encode_prompt, get_tokenizer
from zoo.interfaces import Filter, Model, Preprocessor, Sampler
from zoo.interfaces.embedding import to_eos_ids
from zoo.registry.component_registry import ComponentRegistry

TARGET, PROMPT = "target", "prompt"
MAX_LENGTH = 64
_TEXTS = ("text", "texts", "label", "labels", "messages")


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The output that is looked at; see `zoo.attend`.

    Args:
        has_ended: whether the end token follows the given output.
    """

    output: str | Sequence[int] | None = None
    has_ended: bool = True
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
        inputs: the values by role; a file is a `Path`.
        preprocessors: those of the model, by key of the batch.
        output: the tokens of the output, without start and end tokens; None without an output.
        is_generated: whether the model generated the output.
        has_ended: whether the end token follows the output.
        reads_target: whether the model reads the targets, one step behind its outputs.
        nodes: the names of the nodes of a graph; None if they have only numbers.
    """

    batch: Mapping[str, Tensor]
    inputs: Mapping[str, Any]
    preprocessors: Mapping[str, Preprocessor] = field(default_factory=dict)
    output: Sequence[int] | None = None
    is_generated: bool = False
    has_ended: bool = True
    reads_target: bool = False
    nodes: Sequence[str] | None = None


def prepare_pass(
    model: Model, value: Any, options: OutputOptions, registry: ComponentRegistry | None
) -> Pass:
    """Return the pass of one input; a model that generates does so, unless the output is given."""
    preprocessors = build_preprocessors(model, registry=registry)
    inputs = _name_inputs(model, value, preprocessors)
    if model.generation_input is not None:
        return _prepare_output(model, inputs, options, preprocessors, registry)
    if options != OutputOptions():
        raise ZooError(
            f"model '{model.name}' does not generate, so it has no output, sampler or prompt"
        )
    encoding = _without_ids(preprocessors, inputs)
    if hasattr(model, "embed"):
        return Pass(encode_inputs(model, encoding, [inputs]), inputs, preprocessors)
    named = inputs if isinstance(value, Mapping) or _is_numeric(value) else value
    return Pass(prediction_batch(model, encoding, [named]), inputs, preprocessors)


def _prepare_output(
    model: Model,
    inputs: Mapping[str, Any],
    options: OutputOptions,
    preprocessors: Mapping[str, Preprocessor],
    registry: ComponentRegistry | None,
) -> Pass:
    (key, value), *_ = inputs.items()
    if isinstance(value, np.ndarray) and key not in preprocessors:
        batch = encode_inputs(model, {}, [inputs])
    else:
        batch = encode_batch(model, [value], registry)
    if options.prompt is not None:
        batch |= encode_prompt(model, options.prompt, 1)
    tokens, has_ended, is_generated = _find_output(model, batch, options, preprocessors, registry)
    prefix = _find_prefix(model, batch)
    is_prompt = model.generation_input == PROMPT
    target = _build_target(model, prefix, tokens or [], ended=has_ended or is_prompt)
    batch.pop(PROMPT, None)
    return Pass(
        {**batch, TARGET: torch.tensor([target], device=model_device(model))},
        inputs,
        preprocessors,
        tokens,
        is_generated,
        has_ended,
        "step" in _decoding(model),
    )


def _find_output(
    model: Model,
    batch: Mapping[str, Tensor],
    options: OutputOptions,
    preprocessors: Mapping[str, Preprocessor],
    registry: ComponentRegistry | None,
) -> tuple[list[int] | None, bool, bool]:
    """Return the tokens of the output, whether it has ended, and whether it was generated.

    The prompt of a language model is not continued unless that is asked for.
    """
    if options.output is not None:
        return _encode_output(model, options.output, preprocessors), options.has_ended, False
    asked = any(v is not None for v in (options.sampler, options.max_length, options.seed))
    if model.generation_input == PROMPT and not asked:
        return None, True, False
    length = options.max_length or MAX_LENGTH
    request = build_request(model, options.sampler, options.filters, length, options.seed, registry)
    tokens = generate_batch(model, batch, request, registry)[0][0].tokens
    return tokens, len(tokens) < length, True


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
    if message := describe_unknown(model, [output], is_output=True):
        warnings.warn(message, ZooWarning, stacklevel=2)
    if preprocessor is not None and preprocessor.content == "text":
        ids: list[int] = np.asarray(preprocessor.encode(output)).tolist()
        return ids
    return tokenizer.encode_plain([output], (model.batch_schema() or {})[TARGET])[0]


def _find_prefix(model: Model, batch: Mapping[str, Tensor]) -> list[int]:
    """Return the tokens before the output: bos and the prompt."""
    prefix = list((model.batch_schema() or {})[TARGET].prefix)
    if PROMPT not in batch:
        return prefix
    prompt: list[int] = batch[PROMPT][0].tolist()
    return prompt if model.generation_input == PROMPT else prefix[:1] + prompt


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


def _name_inputs(
    model: Model, value: Any, preprocessors: Mapping[str, Preprocessor]
) -> dict[str, Any]:
    """Return the values by key of the batch; strings that name files as paths, and tensors as
    arrays."""
    schema = model.batch_schema(inference=True) or {}
    first = next((key for key, field in schema.items() if not field.optional), "source")
    named = value if isinstance(value, Mapping) else {first: value}
    contents = {key: each.content for key, each in preprocessors.items()}
    found = {}
    for key, each in named.items():
        is_file = isinstance(each, str) and contents.get(key, "text") not in _TEXTS
        found[key] = Path(each) if is_file else each
        if isinstance(each, Tensor):
            found[key] = each.detach().cpu().numpy()
    if not found:
        raise ZooError(f"no input; expected '{first}' or a mapping of keys to values")
    return found


def _without_ids(
    preprocessors: Mapping[str, Preprocessor], inputs: Mapping[str, Any]
) -> dict[str, Preprocessor]:
    """Return the preprocessors of the inputs that are not token IDs of texts already."""
    return {
        key: each
        for key, each in preprocessors.items()
        if not (each.content in _TEXTS and _is_numeric(inputs.get(key)))
    }


def _is_numeric(value: Any) -> bool:
    """Return whether a value is an array or a list of token IDs."""
    is_ids = isinstance(value, list | tuple) and all(isinstance(token, int) for token in value)
    return isinstance(value, np.ndarray | Tensor) or is_ids
