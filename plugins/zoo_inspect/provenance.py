"""What is needed to compute a view again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import torch

from zoo.about import version
from zoo.generation.raw_inputs import model_device
from zoo.hub.models import Source, read_header
from zoo.interfaces import Model
from zoo_inspect.passes import OutputOptions, Pass


def describe_provenance(
    model: Model, source: Model | Source, looked_at: Pass, options: OutputOptions
) -> dict[str, Any]:
    """Return reference and hashes of the model, versions, and the output with its origin.

    A model that was passed as an object has no reference. `output` has the tokens of the output, so
    that computing a view again does not depend on the sampler; `ended` is whether an end token
    follows.
    """
    reference = None if isinstance(source, Model) else os.fspath(source)
    sampler = options.sampler if options.sampler is not None else (model.spec or {}).get("sampler")
    return {
        "zoo": version(),
        "torch": torch.__version__,
        "device": model_device(model).type,
        "model": {
            "reference": reference,
            "identity": None if reference is None else read_header(reference).identity,
            "weights": hash_weights(model),
        },
        "lock": [dict(row) for row in model.providers],
        "output": None if looked_at.output is None else list(looked_at.output),
        "ended": looked_at.has_ended,
        "generated": looked_at.is_generated,
        "prompt": options.prompt,
        "sampler": _describe(sampler) if looked_at.is_generated else None,
        "max_length": options.max_length,
        "seed": options.seed,
    }


def hash_weights(model: Model) -> str:
    """Return the sha256 of the names, dtypes and values of all parameters and buffers."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().flatten()
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _describe(sampler: Any) -> Any:
    if isinstance(sampler, Mapping | str) or sampler is None:
        return sampler
    return f"{sampler.name}({sampler.extra_repr()})"
