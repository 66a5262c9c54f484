"""Positions of DeBERTa: absolute ones in the inputs, disentangled ones in attention, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zoo import ZooError
from zoo_huggingface.config_fields import config_error, get_path, get_value

Config = Mapping[str, Any]
POSITION_KEYS = (
    *("max_position_embeddings", "position_biased_input", "relative_attention", "pos_att_type"),
    *("max_relative_positions", "position_buckets", "share_att_key", "norm_rel_ebd"),
)
_TERMS = {"c2p": "content-to-position", "p2c": "position-to-content"}
_NAMES = {"learned": "deberta.embeddings.position_embeddings.weight"}
_SHARED = {
    "table.weight": "deberta.encoder.rel_embeddings.weight",
    "norm.{w:weight|bias}": "deberta.encoder.LayerNorm.{w}",
}
_LAYER = "deberta.encoder.layer.{n}.attention.self.pos_{p:key|query}_proj.{w}"


def read_position(encoder: dict[str, Any], config: Config, head_dim: int) -> None:
    """Set the position of an encoder, and the factor of its scores."""
    terms = _read_terms(config)
    if terms:  # transformers counts them also without relative positions
        encoder["attention"]["scorer"]["scale"] = ((1 + len(terms)) * head_dim) ** -0.5
    length = _read_length(config)
    parts: list[dict[str, Any]] = []
    if get_value(config, "position_biased_input", bool, True):
        parts.append({"type": "learned", "length": length})
    norms = get_value(config, "norm_rel_ebd", str, "none").lower().split("|")
    has_norm = "layer_norm" in [norm.strip() for norm in norms]
    if _is_relative(config):
        if not terms:
            raise config_error("pos_att_type", config.get("pos_att_type"), "it has no known term")
        parts.append(
            {
                "type": "disentangled",
                **_read_distances(config, length),
                "terms": "both" if len(terms) == 2 else _TERMS[terms[0]],
                "shared": get_value(config, "share_att_key", bool, False),
                "norm_eps": encoder["norm"]["eps"] if has_norm else None,
                "dropout": encoder["dropout"],
            }
        )
    elif has_norm:
        raise config_error(
            "norm_rel_ebd", config["norm_rel_ebd"], "but 'relative_attention' is false"
        )
    if len(parts) == 2:
        encoder["position"] = {"type": "combined", "parts": parts}
    elif parts:
        encoder["position"] = parts[0]


def position_names(config: Config) -> dict[str, str]:
    """Return the names of tensors of positions in the zoo and in the file."""
    biased = get_value(config, "position_biased_input", bool, True)
    both = biased and _is_relative(config)
    names: dict[str, str] = {}
    if biased:
        place = "parts.0.table.weight" if both else "table.weight"
        names[f"encoder.position.{place}"] = _NAMES["learned"]
    if _is_relative(config):
        prefix = "encoder.position.parts.1." if both else "encoder.position."
        names |= {f"{prefix}{ours}": theirs for ours, theirs in _SHARED.items()}
        part = "parts.1." if both else ""
        ours = f"encoder.blocks.{{n}}.attention.score_bias.{part}{{p:key|query}}.{{w:weight|bias}}"
        names[ours] = _LAYER
    return names


def position_parts(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the positions of the encoder of a spec."""
    position = get_path(spec, "model.encoder.position")
    if position is None:
        return []
    return list(position["parts"]) if "parts" in position else [position]


def write_position(config: dict[str, Any], spec: Mapping[str, Any]) -> None:
    """Set the keys of positions of a config."""
    parts = {str(part["type"]).rpartition(":")[2]: part for part in position_parts(spec)}
    unknown = parts.keys() - {"learned", "disentangled"}
    if unknown:
        raise ZooError(
            f"model.encoder.position is '{min(unknown)}', but an export to deberta-v2 needs "
            "'learned', 'disentangled' or both"
        )
    learned, relative = parts.get("learned"), parts.get("disentangled")
    config["position_biased_input"] = learned is not None
    config["relative_attention"] = relative is not None
    if learned is not None:
        config["max_position_embeddings"] = learned["length"]
    if relative is None:
        return
    config["max_relative_positions"] = relative["max_distance"]
    config["position_buckets"] = relative["buckets"] or -1
    names = [name for name, term in _TERMS.items() if relative["terms"] in (term, "both")]
    if sorted(_read_terms(config)) != sorted(names):
        config["pos_att_type"] = names
    config["share_att_key"] = relative["shared"]
    config["norm_rel_ebd"] = "none" if relative["norm_eps"] is None else "layer_norm"


def _is_relative(config: Config) -> bool:
    relative: bool = get_value(config, "relative_attention", bool, False)
    return relative


def _read_distances(config: Config, length: int) -> dict[str, int | None]:
    key, distance = "max_relative_positions", get_value(config, "max_relative_positions", int, -1)
    if distance < 1:
        key, distance = "max_position_embeddings", length
    buckets = get_value(config, "position_buckets", int, -1)
    if buckets == 1 or distance < 2 or buckets // 2 >= distance - 1:
        raise config_error(key, distance, f"it is too small for 'position_buckets' {buckets}")
    return {"max_distance": distance, "buckets": buckets if buckets > 0 else None}


def _read_length(config: Config) -> int:
    length: int = get_value(config, "max_position_embeddings", int, 512)
    if length < 1:
        raise config_error("max_position_embeddings", length, "it should be at least 1")
    return length


def _read_terms(config: Config) -> list[str]:
    """Return which of 'c2p' and 'p2c' the scores have."""
    value = config.get("pos_att_type")
    names = value.lower().split("|") if isinstance(value, str) else value or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise config_error("pos_att_type", value, "it should be a list of 'c2p' and 'p2c'")
    names = [name.strip() for name in names] if isinstance(value, str) else names
    unknown = [name for name in names if name not in _TERMS]
    if unknown and unknown != [""]:
        raise config_error("pos_att_type", value, "supported values: c2p, p2c")
    return [name for name in _TERMS if name in names]
