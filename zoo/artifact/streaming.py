"""Writing of an artifact in a stream: tensors are written as they are produced, one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from zoo.artifact.atomic_write import write_single_file
from zoo.artifact.file_contents import FileContents
from zoo.artifact.loadable import parse_headers
from zoo.artifact.saving import build_metadata
from zoo.artifact.weights import check_tensors, named_tensors
from zoo.errors import ArtifactError
from zoo.files import os_error_message, resolve_target
from zoo.interfaces import Model
from zoo.interfaces.tensors import TensorMeta

_SKIPPED = {"skipped": "written in a stream, without running the model"}


def write_stream(
    model: Model,
    metas: Mapping[str, TensorMeta],
    tensors: Iterable[tuple[str, Tensor]],
    path: str | os.PathLike[str],
    *,
    provenance: Mapping[str, Any],
) -> Path:
    """Write the artifact of a model without its weights in memory. An existing file is replaced.

    The model is not run, so the artifact has no probe.

    Args:
        model: the model, on the meta device.
        metas: shape and dtype of each tensor.
        tensors: the tensors, in any order.
    """
    empty = {name: meta.empty() for name, meta in metas.items()}
    check_tensors(path, empty, named_tensors(model))
    contents = FileContents([empty], build_metadata(model, provenance, _SKIPPED))
    try:
        target = resolve_target(path)
        parse_headers(target, contents)
        write_single_file(target, lambda temporary: contents.write_stream(temporary, tensors))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} could not be written: {os_error_message(error)}") from error
    return target
