"""Files of models that are not read: pickles, and weights of llama.cpp. Messages say what to do."""

from __future__ import annotations

import glob
import json
import re
import shlex
from pathlib import Path

from zoo.errors import ZooError

_SHARD = re.compile(r"-\d+-of-\d+")
_TORCH_CODE = (
    "import torch; from glob import glob; from safetensors.torch import save_file; "
    "tensors = {{k: v.contiguous().clone() for f in sorted(glob({files})) for k, v in "
    "torch.load(f, map_location={cpu}, weights_only=True).items() if torch.is_tensor(v)}}; "
    "tensors or exit({message}); save_file(tensors, {output})"
)
_NUMPY_CODE = (
    "import numpy; from glob import glob; from safetensors.numpy import save_file; "
    "arrays = {{k: v for f in glob({files}) for k, v in numpy.load(f).items()}}; "
    "arrays or exit({message}); save_file(arrays, {output})"
)
_CODE = {
    **dict.fromkeys((".bin", ".pt", ".pth", ".ckpt", ".pkl"), _TORCH_CODE),
    **dict.fromkeys((".npz", ".npy"), _NUMPY_CODE),
}


def reject_unreadable(path: Path) -> None:
    """Raise ZooError for files that may contain a pickle, because loading it can execute code, and
    for files of llama.cpp."""
    if path.suffix == ".gguf":
        raise ZooError(
            f"{path} is a file of llama.cpp, whose weights are usually quantized; import the "
            "checkpoint that it was converted from, with a config.json and safetensors files"
        )
    if path.suffix in _CODE:
        raise ZooError(
            f"{path} may contain a pickle, which can execute code when loaded; if you trust it, "
            f"convert it: {conversion_command(path)}"
        )


def conversion_command(path: Path) -> str:
    """Return a shell command that writes the tensors of a file, or of all its shards, to
    ``model.safetensors`` in its folder; it writes nothing if there are none."""
    folder = path.parent.absolute()
    pattern = _SHARD.sub("-[0-9]*-of-[0-9]*", glob.escape(path.name))
    code = _CODE[path.suffix].format(
        files=json.dumps(f"{glob.escape(str(folder))}/{pattern}"),
        cpu='"cpu"',
        message=json.dumps(f"{path.name} contains no tensors"),
        output=json.dumps(str(folder / "model.safetensors")),
    )
    return f"python -c {shlex.quote(code)}"


def reject_unreadable_folder(folder: Path) -> None:
    """Raise ZooError if a folder has weights that are not read; those of a model come first."""
    files = [file for file in folder.iterdir() if file.is_file()]
    for file in sorted(files, key=lambda file: (not file.name.startswith("pytorch_model"), file)):
        reject_unreadable(file)
