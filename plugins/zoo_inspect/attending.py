"""`zoo.attend`: what a model attends to on one input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from zoo.errors import ZooError
from zoo.generation.pipeline import ComponentSpec
from zoo.generation.prediction import Prediction, can_predict, to_predictions
from zoo.generation.text_inputs import get_tokenizer
from zoo.hub.models import Source, load
from zoo.interfaces import Filter, Model, Outputs, Sampler
from zoo.registry.component_registry import ComponentRegistry
from zoo_inspect.layers import find_edges, view_layers
from zoo_inspect.passes import TARGET, OutputOptions, Pass, prepare_pass
from zoo_inspect.pixels import find_images
from zoo_inspect.provenance import describe_provenance
from zoo_inspect.saving import SavedView


def attend(
    model: Model | Source,
    inputs: Any,
    *,
    output: str | Sequence[int] | None = None,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    prompt: str | Sequence[int] | None = None,
    max_length: int | None = None,
    seed: int | None = None,
    nodes: Sequence[str] | None = None,
    device: str | torch.device = "cpu",
    registry: ComponentRegistry | None = None,
) -> SavedView:
    """Return what a model attends to on one input, in evaluation mode.

    A model with a source generates its output; the weights are those of the winning hypothesis. A
    language model shows its prompt, and what it generates if ``sampler``, ``max_length`` or
    ``seed`` is given.

    Args:
        model: a model, or what `zoo.load` takes.
        inputs: one input as `zoo.generate` or `zoo.predict` take it: a text, token IDs, a file or
            an array; for a model with several inputs, a mapping of key to value.
        output: the output, as text or token IDs, instead of a generated one.
        sampler, filters, prompt, seed: as those of `zoo.generate`.
        max_length: maximum number of generated tokens; 64 if None.
        nodes: the names of the nodes of a graph; numbers from 0 if None.
        device: where a model that is named is loaded.

    Raises:
        ZooError: if the model has no attention, or the input cannot be used.
    """
    options = OutputOptions(
        output=output,
        sampler=sampler,
        filters=filters,
        prompt=prompt,
        max_length=max_length,
        seed=seed,
    )
    loaded = model if isinstance(model, Model) else load(model, device=device, registry=registry)
    return view_output(loaded, inputs, options, source=model, nodes=nodes, registry=registry)


def view_output(
    loaded: Model,
    inputs: Any,
    options: OutputOptions,
    *,
    source: Model | Source,
    nodes: Sequence[str] | None = None,
    registry: ComponentRegistry | None = None,
) -> SavedView:
    """Return what a loaded model attends to; `source` is what it was loaded from."""
    looked_at = replace(prepare_pass(loaded, inputs, options, registry), nodes=nodes)
    layers, outputs = view_layers(loaded, looked_at)
    if not layers:
        raise ZooError(
            f"model '{loaded.name}' computes no attention weights on this input, so there is "
            "nothing to show"
        )
    return SavedView(
        model=str((loaded.spec or {}).get("name") or loaded.name),
        inputs=looked_at.inputs,
        output=_describe_output(loaded, looked_at, outputs),
        layers=layers,
        spec=loaded.spec or {},
        provenance=describe_provenance(loaded, source, looked_at, options),
        images=find_images(looked_at),
        edges=find_edges(loaded.batch_schema() or {}, looked_at.batch, layers),
    )


def _describe_output(model: Model, looked_at: Pass, outputs: Any) -> str | None:
    """Return the text of an output, IDs without a tokenizer; the prediction of a classifier."""
    tokens = looked_at.output
    if tokens is not None:
        tokenizer = get_tokenizer(model, TARGET)
        return " ".join(map(str, tokens)) if tokenizer is None else tokenizer.decode(tokens)
    if not (isinstance(outputs, Outputs) and can_predict(model)):
        return None
    logits = outputs.logits[0, outputs.mask[0]]
    (found,) = to_predictions(model, logits, looked_at.preprocessors.get(TARGET))
    if isinstance(found, Prediction):
        return f"{found.label} (p = {found.probability:.3f})"
    return str(found)
