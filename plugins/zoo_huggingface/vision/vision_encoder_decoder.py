"""Vision encoder-decoder: TrOCR, and captions with GPT-2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import yaml

from zoo import ZooError
from zoo.plugin import TensorReader
from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import (
    RequiredValue,
    config_error,
    get_eos_id,
    get_mapping,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys, read_defaults
from zoo_huggingface.shared_tensors import is_same
from zoo_huggingface.vision.decoder_part import DecoderPart
from zoo_huggingface.vision.deit import DeiT
from zoo_huggingface.vision.gpt2_decoder import Gpt2Decoder
from zoo_huggingface.vision.trocr import TrOCRDecoder
from zoo_huggingface.vision.vit import ViT

_TOKENS = ("eos_token_id", "decoder_start_token_id")


class _ViTEncoder(ViT):
    def set_head(self, spec: dict[str, Any], config: Config) -> None:
        """The encoder has no head."""


class _DeiTEncoder(DeiT):
    def set_head(self, spec: dict[str, Any], config: Config) -> None:
        """The encoder has no head."""


_ENCODERS: Mapping[str, ViT] = {each.name: each for each in (_ViTEncoder(), _DeiTEncoder())}
_DECODERS: Mapping[str, DecoderPart] = {each.name: each for each in (TrOCRDecoder(), Gpt2Decoder())}


class VisionEncoderDecoder(Architecture):
    """Image to text: encoder ViT or DeiT, decoder TrOCR or GPT-2 (Li et al. 2023).

    The configs of both parts have the names ``encoder.KEY`` and ``decoder.KEY`` in messages.
    """

    name = "vision-encoder-decoder"
    model_classes = ("VisionEncoderDecoderModel",)
    preprocessor_kind = "image"
    generates = True
    generates_padding = False
    start_keys = ("decoder_start_token_id",)
    padding_path = "model.target.padding"
    unchecked_spec_paths = ViT.unchecked_spec_paths
    template: ClassVar[Mapping[str, Any]] = {
        "model": {"type": "seq2seq"},
        "sampler": "greedy",
        "objective": "cross-entropy",
    }
    fields = ()
    used_keys = ("encoder", "decoder", *_TOKENS)
    required_values = (
        RequiredValue("is_encoder_decoder", True, "the model has an encoder and a decoder"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "that of the decoder is used": """
                bos_token_id pad_token_id tie_word_embeddings vocab_size
                """,
            "it identifies the file or the model": "processor_class",
        }
    )

    @property
    def config_keys(self) -> set[str]:
        parts = {"encoder": _ENCODERS, "decoder": _DECODERS}
        return set(_TOKENS).union(
            f"{side}.{key}"
            for side, found in parts.items()
            for part in found.values()
            for key in part.config_keys
            if key not in ("id2label", "num_labels")
        )

    def map(self, config: Config) -> dict[str, Any]:
        encoder, decoder = _parts(config)
        content = _load(encoder.map(get_mapping(config, "encoder")), f"{encoder.name}.")
        for head in ("out", "pooler"):
            content["rename"].pop(f"{head}.{{w:weight|bias}}")
        content["drop"] = [
            {
                "name": f"encoder.pooler.dense.{name}",
                "export": "zeros",
                "shape": shape,
                "purpose": "a layer of the encoder that the model does not use",
            }
            for name, shape in (("weight", ["$pooled", "$width"]), ("bias", ["$pooled"]))
        ]
        pooled = get_mapping(config, "encoder").get("pooler_output_size")
        width = "model.source.dim"
        content["values"] = {"width": width, "pooled": pooled or width}
        rules = decoder.rules()
        content["rename"] |= rules["rename"]
        for key in ("convert", "drop"):
            content[key] += rules[key]
        return {**content, "description": "VisionEncoderDecoder in transformers to seq2seq"}

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        result = dict(super().extend_config(config, folder, weights))
        _, decoder = _parts(config)
        (output,) = decoder.tied_weight_names
        untied = not decoder.is_tied(get_mapping(config, "decoder"))
        if output in weights.metas:
            untied = untied or not is_same(weights, output, decoder.embedding_key)
        return {**result, "untied": untied}

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        encoder, decoder = _parts(config)
        given, model = get_mapping(config, "decoder"), spec["model"]
        tokens = {**read_defaults(decoder.name), **given}
        tokens |= {key: config[key] for key in _TOKENS if config.get(key) is not None}
        model["eos"] = get_eos_id(tokens)
        model["bos"] = get_value(tokens, "decoder_start_token_id", int)
        model |= {key: deepcopy(encoder.template["model"][key]) for key in ("source", "encoder")}
        model |= {key: deepcopy(decoder.template[key]) for key in ("target", "decoder")}
        with _named("encoder"):
            encoder.fill_spec(spec, _without_class(get_mapping(config, "encoder")))
        with _named("decoder"):
            untied = {"untied": config["untied"]} if "untied" in config else {}
            decoder.fill_spec(spec, _without_class(given) | untied)
        _check_widths(model["source"]["dim"], model["target"]["dim"], given)

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        """The padding of the tokenizer is not used: only targets are padded."""

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        has_parts = config.get("encoder") and config.get("decoder")
        encoder, decoder = _parts(config) if has_parts else _matching_parts(spec)
        for side, part in (("encoder", encoder), ("decoder", decoder)):
            written = part.fill_config(spec, get_mapping(config, side))
            config[side] = {key: value for key, value in written.items() if key != "architectures"}
        config |= {
            "eos_token_id": get_path(spec, "model.eos"),
            "decoder_start_token_id": get_path(spec, "model.bos"),
        }

    def tokenizers(self, folder: Path, config: Config) -> Mapping[str, Path]:
        file = folder / "tokenizer.json"
        return {"target": file} if file.is_file() else {}


def _parts(config: Config) -> tuple[ViT, DecoderPart]:
    """Return the importers of the encoder and of the decoder."""
    names = [get_mapping(config, side).get("model_type") for side in ("encoder", "decoder")]
    for side, name, known in zip(
        ("encoder", "decoder"), names, (_ENCODERS, _DECODERS), strict=True
    ):
        if not isinstance(name, str) or name not in known:
            raise config_error(f"{side}.model_type", name, f"supported values: {', '.join(known)}")
    return _ENCODERS[str(names[0])], _DECODERS[str(names[1])]


def _matching_parts(spec: Mapping[str, Any]) -> tuple[ViT, DecoderPart]:
    """Return the importers of the parts of a model that was not imported."""
    encoder = "deit" if get_path(spec, "model.source.extra_tokens") else "vit"
    decoder = "gpt2" if get_path(spec, "model.decoder.norm.place") == "pre" else "trocr"
    return _ENCODERS[encoder], _DECODERS[decoder]


def _without_class(config: Config) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "architectures"}


def _check_widths(memory: int, width: int, config: Config) -> None:
    """Raise ZooError if transformers projects the states of the encoder, or rejects the config."""
    key = "cross_attention_hidden_size"
    value = get_value(config, key, int, None)
    if value is None and memory != width:
        raise config_error(
            f"decoder.{key}",
            value,
            f"a projection of the encoder's {memory} features to the decoder's {width} is not "
            "supported",
        )
    if value not in (None, memory):
        raise config_error(f"decoder.{key}", value, f"it should be 'encoder.hidden_size', {memory}")


def _load(source: Path | dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the content of a map, with ``encoder.`` instead of a prefix of the tensors."""
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else yaml.dump(source)
    content: dict[str, Any] = yaml.safe_load(text)
    content["rename"] = {
        ours: theirs.replace(prefix, "encoder.", 1) for ours, theirs in content["rename"].items()
    }
    for rule in content["convert"]:
        rule["theirs"] = rule["theirs"].replace(prefix, "encoder.", 1)
    return content


@contextmanager
def _named(side: str) -> Iterator[None]:
    """Name the part of the config in errors."""
    try:
        yield
    except ZooError as error:
        message = str(error).replace("config.json: '", f"config.json: '{side}.", 1)
        raise ZooError(message.replace("has no '", f"has no '{side}.", 1)) from None
