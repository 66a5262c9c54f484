"""Outputs of transformers for random padded batches, to compare an import with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo import ZooError
from zoo_huggingface.config_fields import get_path

_ROWS, _LENGTH = 4, 12
_SOURCES = ("token", "patches")
Arrays = dict[str, Tensor]


def original_outputs(folder: Path, model_class: str, spec: Mapping[str, Any]) -> Arrays:
    """Return inputs ``batch.KEY`` of the model of a spec, and ``output.logits`` of transformers.

    Outputs at padding are NaN, which is not compared.
    """
    try:
        import transformers
    except ImportError:
        raise ZooError(
            "--check-with-transformers needs transformers; install it: pip install transformers"
        ) from None
    kind = str(get_path(spec, "model.type")).rpartition(":")[2]
    if kind not in _BATCHES or get_path(spec, "model.source.type") not in (None, *_SOURCES):
        raise ZooError(
            f"--check-with-transformers does not support the model '{kind}'; it supports "
            f"{', '.join(_BATCHES)} of tokens or images; use --check FILE.npz"
        )
    original = getattr(transformers, model_class).from_pretrained(
        folder, local_files_only=True, use_safetensors=True, dtype=torch.float32
    )
    with torch.no_grad():
        return _BATCHES[kind](original.eval(), spec, torch.Generator().manual_seed(0))


def _language_model(original: Any, spec: Mapping[str, Any], generator: torch.Generator) -> Arrays:
    tokens, mask = _tokens(spec, "model.embedding", generator)
    logits = original(input_ids=tokens, attention_mask=mask).logits[:, :-1]
    return {"batch.target": tokens, "batch.mask": mask, **_logits(logits, mask[:, 1:])}


def _masked_lm(original: Any, spec: Mapping[str, Any], generator: torch.Generator) -> Arrays:
    tokens, mask = _tokens(spec, "model.source", generator)
    logits = original(input_ids=tokens, attention_mask=mask).logits
    target = tokens.clone()
    return {"batch.source": tokens, "batch.target": target, **_logits(logits, mask)}


def _seq2seq(original: Any, spec: Mapping[str, Any], generator: torch.Generator) -> Arrays:
    inputs: Arrays
    prompt, config = "decoder_input_ids", original.config
    if get_path(spec, "model.source.type") == "patches":
        is_nested = hasattr(config, "vision_config")
        prompt = "input_ids" if is_nested else prompt
        source = _images(config.vision_config if is_nested else config.encoder, generator)
        inputs, table = {"pixel_values": source}, "model.target"
    else:
        source, mask = _tokens(spec, "model.source", generator)
        inputs, table = {"input_ids": source, "attention_mask": mask}, "model.source"
    target, valid = _tokens(spec, table, generator)
    target[:, 0] = get_path(spec, "model.bos")
    logits = original(**inputs, **{prompt: target[:, :-1]}).logits
    return {"batch.source": source, "batch.target": target, **_logits(logits, valid[:, :-1])}


def _classifier(original: Any, spec: Mapping[str, Any], generator: torch.Generator) -> Arrays:
    config = original.config
    target = torch.zeros(_ROWS, dtype=torch.long)
    if get_path(spec, "model.multi_label"):
        target = torch.zeros(_ROWS, config.num_labels)
    if get_path(spec, "model.source.type") == "token":
        tokens, mask = _tokens(spec, "model.source", generator)
        logits = original(input_ids=tokens, attention_mask=mask).logits[:, None]
        return {"batch.source": tokens, "batch.target": target, "output.logits": logits}
    images = _images(original.config, generator)
    logits = original(pixel_values=images).logits[:, None]
    return {"batch.source": images, "batch.target": target, "output.logits": logits}


def _two_towers(original: Any, spec: Mapping[str, Any], generator: torch.Generator) -> Arrays:
    images = _images(original.config.vision_config, generator)
    tokens = _ended_tokens(spec["model"]["target"], generator)
    logits = original(pixel_values=images, input_ids=tokens).logits_per_image[:, None]
    return {"batch.source": images, "batch.target": tokens, "output.logits": logits}


def _one_tower(original: Any, spec: Mapping[str, Any], generator: torch.Generator) -> Arrays:
    tower = spec["model"]["source"]
    is_text = get_path(tower, "embedding.vocab") is not None
    source = _ended_tokens(tower, generator) if is_text else _images(original.config, generator)
    outputs = original(**{"input_ids" if is_text else "pixel_values": source})
    names = ("pooler_output", "image_embeds", "text_embeds")
    vectors = next(outputs[name] for name in names if outputs.get(name) is not None)
    states = outputs.last_hidden_state
    return {"batch.source": source, "output.logits": states, "output.vectors": vectors}


_BATCHES = {
    "language-model": _language_model,
    "masked-lm": _masked_lm,
    "seq2seq": _seq2seq,
    "classifier": _classifier,
    "two-towers": _two_towers,
    "one-tower": _one_tower,
}


def _ended_tokens(tower: Mapping[str, Any], generator: torch.Generator) -> Tensor:
    """Return random tokens [B, S] of a tower of texts, each with an end token."""
    vocab, eos = int(tower["embedding"]["vocab"]), tower.get("eos")
    length = min(_LENGTH, int(tower["encoder"]["position"]["length"]))
    tokens = torch.randint(0, vocab - 1, (_ROWS, length), generator=generator)
    tokens[:, -1] = vocab - 1 if eos is None else eos  # the highest token ends a text
    return tokens


def _images(config: Any, generator: torch.Generator) -> Tensor:
    channels = getattr(config, "num_channels", 3)
    size = (_ROWS, channels, config.image_size, config.image_size)
    return torch.randn(size, generator=generator)


def _tokens(
    spec: Mapping[str, Any], path: str, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return random tokens [B, S], padded on the right, and their mask."""
    vocab, padding = int(get_path(spec, f"{path}.vocab")), get_path(spec, f"{path}.padding")
    tokens = torch.randint(0, vocab - 1, (_ROWS, _LENGTH), generator=generator)
    if padding is not None:
        tokens += tokens >= padding  # other tokens than padding
    lengths = torch.tensor([_LENGTH, 3, 7, 2])
    mask = torch.arange(_LENGTH) < lengths[:, None]
    return tokens.where(mask, padding or 0), mask


def _logits(logits: Tensor, mask: Tensor) -> Arrays:
    return {"output.logits": logits.masked_fill(~mask[..., None], float("nan"))}
