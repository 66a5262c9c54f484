"""Folders of sentence-transformers: a ``modules.json`` lists pooling, projections and norm."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo import ZooError, ZooWarning
from zoo_huggingface.config_fields import get_path, read_json

_POOLINGS = {"mean": "mean", "cls": "first", "max": "max", "lasttoken": "last"}
_POOLING_KEY = re.compile("^pooling_mode_|_tokens?$")
_ACTIVATIONS = {
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.linear.Identity": "none",
}
_VECTOR = "sentence_embedding"
_TEXT_FILES = (
    *("sentence_bert_config.json", "sentence_roberta_config.json"),
    *("sentence_distilbert_config.json", "sentence_camembert_config.json"),
    *("sentence_albert_config.json", "sentence_xlm-roberta_config.json"),
)
"""Names of the file with the options of the texts; the first that exists is used."""
_TEXT_OPTIONS: Mapping[str, tuple[Any, ...]] = {
    "transformer_task": ("feature-extraction",),
    "modality_config": (
        {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    ),
    "module_output_name": ("token_embeddings",),
    "unpad_inputs": (True,),
}
"""Values of options that do not change the vectors; null, false and empty ones never do."""
_POOLING_KEYS = ("word_embedding_dimension", "embedding_dimension", "include_prompt")
_CONFIG = "config_sentence_transformers.json"
_ENCODER_TYPE = "SentenceTransformer"
_HARMLESS_KEYS = ("__version__", "requirements")
"""Keys of that file which only name versions of libraries."""
Modules = Sequence[tuple[str, str]]


def projection_folder(number: int) -> str:
    """Return the folder of a dense module, after those of the encoder and the pooling."""
    return f"{number + 2}_Dense"


def projection_folders(spec: Mapping[str, Any]) -> list[str]:
    """Return the folders of the dense modules of a spec."""
    projections = get_path(spec, "model.projections") or ()
    return [projection_folder(number) for number in range(len(projections))]


def is_sentence_encoder(spec: Mapping[str, Any]) -> bool:
    return str(spec["model"]["type"]).endswith("sentence-encoder")


def sentence_texts(config: Mapping[str, Any], max_length: int | None) -> dict[str, Any]:
    """Return the section `preprocessing` of a sentence encoder, whose texts are cut."""
    own = config.get("sentence_length")
    if own is not None and config.get("padding_ends"):
        own = max(own - 1, 1)  # the end token is added later
    lengths = [own, max_length]
    length = min((number for number in lengths if number is not None), default=None)
    texts = {"type": "text", "max_length": length, "truncate": length is not None}
    return {"source": texts, "target": dict(texts)} if config.get("has_tokenizer") else {}


def sentence_files(spec: Mapping[str, Any], dim: int) -> dict[str, Any]:
    """Return the files of sentence-transformers for a sentence encoder of this width."""
    projections: Sequence[Mapping[str, Any]] = get_path(spec, "model.projections") or ()
    names = ["Transformer", "Pooling", *("Dense" for _ in projections)]
    names += ["Normalize"] if get_path(spec, "model.normalise") else []
    rows = [
        {
            "idx": i,
            "name": str(i),
            "path": f"{i}_{name}" if i else "",
            "type": f"sentence_transformers.models.{name}",
        }
        for i, name in enumerate(names)
    ]
    pooling = get_path(spec, "model.pooling")
    (mode,) = (theirs for theirs, ours in _POOLINGS.items() if ours == pooling)
    keys = {"cls": "pooling_mode_cls_token", "lasttoken": "pooling_mode_lasttoken"}
    key = keys.get(mode, f"pooling_mode_{mode}_tokens")
    files: dict[str, Any] = {
        "modules.json": rows,
        "1_Pooling/config.json": {
            "word_embedding_dimension": dim,
            key: True,
            "include_prompt": get_path(spec, "model.include_prompt") is not False,
        },
        _CONFIG: {
            "model_type": _ENCODER_TYPE,
            "prompts": dict(get_path(spec, "model.prompts") or {}),
            "default_prompt_name": get_path(spec, "model.default_prompt"),
            "similarity_fn_name": "cosine",
            "truncate_dim": get_path(spec, "model.truncate_dim"),
        },
    }
    for number, projection in enumerate(projections):
        (activation,) = (a for a, ours in _ACTIVATIONS.items() if ours == projection["activation"])
        files[f"{projection_folder(number)}/config.json"] = {
            "in_features": dim,
            "out_features": projection["dim"],
            "bias": projection["bias"],
            "activation_function": activation,
        }
        dim = projection["dim"]
    length = get_path(spec, "preprocessing.source.max_length")
    if length is not None:
        length += get_path(spec, "model.source.padding_ends") is True  # the end token
        options = {"max_seq_length": length, "do_lower_case": False}
        files["sentence_bert_config.json"] = options
    return files


def read_sentence_config(folder: Path) -> dict[str, Any]:
    """Return what the files of sentence-transformers add to a config.

    ``sentence`` has the parameters of the model, ``sentence_length`` the maximum number of tokens,
    ``lowercase`` whether texts are converted to lower case.
    """
    modules = _read_modules(folder)
    pooling = _read_pooling(folder, modules[1][1])
    dense = [path for name, path in modules if name == "Dense"]
    projections = [_read_projection(folder, i, path) for i, path in enumerate(dense)]
    normalise = modules[-1][0] == "Normalize"
    options = _read_text_options(folder)
    embedding = {**_read_embedding_options(folder), **_read_include_prompt(folder, modules[1][1])}
    _check_similarity(folder, is_normalised=normalise)
    length = options.get("max_seq_length")
    if length is None:
        tokenizer = folder / "tokenizer_config.json"
        length = (read_json(tokenizer) if tokenizer.is_file() else {}).get("model_max_length")
    if type(length) not in (int, float, type(None)) or (length is not None and length < 1):
        raise ZooError(f"the maximum number of tokens is {length!r}; it should be positive")
    return {
        "sentence": {
            "pooling": pooling,
            "normalise": normalise,
            "projections": projections,
            **embedding,
        },
        "sentence_length": int(length) if length is not None else None,
        "lowercase": bool(options.get("do_lower_case")),
    }


def _read_modules(folder: Path) -> Modules:
    """Return the name and the folder of each module."""
    rows = read_json(folder / "modules.json")
    modules = []
    for row in rows if isinstance(rows, list) else ():
        row = row if isinstance(row, dict) else {}
        name, path = str(row.get("type")), str(row.get("path"))
        if not name.startswith("sentence_transformers."):
            raise ZooError(
                f"modules.json: the module {name!r} is not one of sentence-transformers, and its "
                "code is not run"
            )
        if row.get("kwargs"):
            raise ZooError(f"modules.json: 'kwargs' is {row['kwargs']!r}, which is not supported")
        modules.append((name.rpartition(".")[2], path))
    names = [name for name, _ in modules]
    middle = names[2:-1] if names[-1:] == ["Normalize"] else names[2:]
    if names[:2] != ["Transformer", "Pooling"] or set(middle) - {"Dense"}:
        raise ZooError(
            f"modules.json lists {', '.join(names) or 'no modules'}; supported: Transformer and "
            "Pooling, optionally Dense and Normalize"
        )
    if modules[0][1] not in ("", "."):
        raise ZooError(
            f"modules.json: the path of Transformer is {modules[0][1]!r}; it should be the "
            "folder itself"
        )
    for name, path in modules[1:]:
        if Path(path).name != path:
            raise ZooError(f"modules.json: the path {path!r} of {name} is not a folder beside it")
    return modules


def _read_pooling(folder: Path, path: str) -> str:
    config = read_json(folder / path / "config.json")
    modes = _pooling_modes(config)
    for key, value in config.items() if isinstance(config, dict) else ():
        if key not in _POOLING_KEYS and not key.startswith("pooling_mode") and value:
            raise ZooError(f"{path}/config.json: '{key}' is {value!r}, which is not supported")
    if len(modes) == 1 and modes[0] in _POOLINGS:
        return _POOLINGS[modes[0]]
    raise ZooError(
        f"{path}/config.json: the pooling mode is {' and '.join(modes) or 'not set'}; supported: "
        f"one of {', '.join(_POOLINGS)}"
    )


def _read_projection(folder: Path, number: int, path: str) -> dict[str, Any]:
    """Return the parameters of a dense module."""
    if path != projection_folder(number):
        expected = projection_folder(number)
        raise ZooError(f"modules.json: the path of Dense is {path!r}; it should be {expected!r}")
    config = read_json(folder / path / "config.json")
    config = config if isinstance(config, dict) else {}
    activation = config.get("activation_function", next(iter(_ACTIVATIONS)))
    ignored = ("in_features", "out_features", "bias", "activation_function")
    for key, value in config.items():
        if key not in ignored and value not in (None, False, _VECTOR):
            raise ZooError(f"{path}/config.json: '{key}' is {value!r}, which is not supported")
    if activation not in _ACTIVATIONS:
        raise ZooError(
            f"{path}/config.json: 'activation_function' is {activation!r}; supported: "
            f"{', '.join(_ACTIVATIONS)}"
        )
    width, bias = config.get("out_features"), config.get("bias", True)
    if type(width) is not int or type(bias) is not bool:
        raise ZooError(
            f"{path}/config.json: 'out_features' should be an integer, and 'bias' true or false"
        )
    return {"dim": width, "activation": _ACTIVATIONS[activation], "bias": bias}


def _read_text_options(folder: Path) -> dict[str, Any]:
    """Return the options of texts; raise ZooError for those that are not supported."""
    name = next((name for name in _TEXT_FILES if (folder / name).is_file()), None)
    options = read_json(folder / name) if name else {}
    options = options if isinstance(options, dict) else {}
    for key, value in options.items():
        known = key in ("max_seq_length", "do_lower_case")
        if not known and value and value not in _TEXT_OPTIONS.get(key, ()):
            raise ZooError(f"{name}: '{key}' is {value!r}, which is not supported")
    return options


def _read_config(folder: Path) -> dict[str, Any]:
    config = read_json(folder / _CONFIG) if (folder / _CONFIG).is_file() else {}
    if not isinstance(config, dict):
        raise ZooError(f"{_CONFIG}: expected a mapping")
    return config


def _read_embedding_options(folder: Path) -> dict[str, Any]:
    """Return prompts and width of the vectors; raise ZooError for keys that are not supported."""
    config = _read_config(folder)
    used = ("prompts", "default_prompt_name", "truncate_dim", "similarity_fn_name", "model_type")
    for key, value in config.items():
        if key not in (*used, *_HARMLESS_KEYS) and value not in (None, False, {}, [], ""):
            raise ZooError(f"{_CONFIG}: '{key}' is {value!r}, which is not supported")
    if config.get("model_type") not in (None, _ENCODER_TYPE):
        raise ZooError(
            f"{_CONFIG}: 'model_type' is {config['model_type']!r}; supported: {_ENCODER_TYPE}"
        )
    prompts = config.get("prompts") or {}
    texts = [*prompts.values()] if isinstance(prompts, dict) else [prompts]
    if not all(text is None or isinstance(text, str) for text in texts):
        raise ZooError(f"{_CONFIG}: 'prompts' is {prompts!r}; it should be a mapping of texts")
    prompts = {name: text or "" for name, text in prompts.items()}
    default, width = config.get("default_prompt_name"), config.get("truncate_dim")
    if default is not None and default not in prompts:
        raise ZooError(
            f"{_CONFIG}: 'default_prompt_name' is {default!r}, which is not one of 'prompts' "
            f"({', '.join(prompts) or 'none'})"
        )
    if width is not None and (type(width) is not int or width < 1):
        raise ZooError(f"{_CONFIG}: 'truncate_dim' is {width!r}; it should be a positive integer")
    return {"prompts": prompts or None, "default_prompt": default, "truncate_dim": width}


def _check_similarity(folder: Path, *, is_normalised: bool) -> None:
    """Warn if vectors should not be compared by cosine; products and distances of vectors of
    length one have the same order."""
    name = _read_config(folder).get("similarity_fn_name")
    if name not in (None, "cosine") and (name == "manhattan" or not is_normalised):
        warnings.warn(
            f"{_CONFIG}: 'similarity_fn_name' is {name!r}; the vectors are those of the model, but "
            "the logits of the zoo and the metric 'retrieval' compare them by cosine",
            ZooWarning,
            stacklevel=2,
        )


def _read_include_prompt(folder: Path, path: str) -> dict[str, bool]:
    config = read_json(folder / path / "config.json")
    included = config.get("include_prompt", True)
    if type(included) is not bool:
        raise ZooError(f"{path}/config.json: 'include_prompt' should be true or false")
    return {"include_prompt": included}


def _pooling_modes(config: Any) -> list[str]:
    """Return the pooling modes of a config: a name or, in older files, one key per mode."""
    if not isinstance(config, dict):
        return []
    mode = config.get("pooling_mode") or []
    names = [str(name) for name in (mode if isinstance(mode, list) else [mode])]
    keys = [key for key, on in config.items() if key.startswith("pooling_mode_") and on is True]
    return names + [_POOLING_KEY.sub("", key) for key in keys]
