"""WavLM: wav2vec 2.0 with a gated relative position bias."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import ConfigField, config_error
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.speech.wav2vec2 import Wav2Vec2


class WavLM(Wav2Vec2):
    """WavLM, with or without a head (Chen et al. 2022)."""

    name = "wavlm"
    model_classes = ("WavLMForCTC", "WavLMForSequenceClassification", "WavLMModel")
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            **Wav2Vec2.template["model"],
            "encoder": {
                **Wav2Vec2.template["model"]["encoder"],
                "position": {"type": "gated", "position": {"type": "t5"}},
            },
        }
    }
    own_names: ClassVar[Mapping[str, str]] = {
        "encoder.position.position.table.weight": (
            "encoder.layers.0.attention.rel_attn_embed.weight"
        ),
        "encoder.blocks.{n}.attention.score_bias.gates.{w:weight|bias}": (
            "encoder.layers.{n}.attention.gru_rel_pos_linear.{w}"
        ),
        "encoder.blocks.{n}.attention.score_bias.factor": (
            "encoder.layers.{n}.attention.gru_rel_pos_const"
        ),
    }
    fields = (
        *Wav2Vec2.fields,
        ConfigField("num_buckets", "model.encoder.position.position.buckets", int, 320),
        ConfigField(
            "max_bucket_distance", "model.encoder.position.position.max_distance", int, 800
        ),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Wav2Vec2.ignored_keys,
        **ignored_keys({"it affects training only": "num_ctc_classes replace_prob"}),
    }

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        relative = spec["model"]["encoder"]["position"]["position"]
        _check_buckets(relative["buckets"], relative["max_distance"])
        super().update_spec(spec, config)


def _check_buckets(buckets: int, max_distance: int) -> None:
    """Raise ZooError if a distance is so near to the border of two buckets that it depends on
    rounding: transformers rounds down after the number of near distances is added."""
    count = buckets // 2
    near = count // 2
    if not 0 < near < max_distance < 2**20:
        return  # the position rejects it
    distances = torch.arange(near, max_distance + 1)
    logs = torch.log(distances.float() / near) / math.log(max_distance / near)
    far = logs * (count - near)
    differs = ((near + far).long() != near + far.long()).nonzero().flatten()
    if len(differs) and int(differs[0]) < len(distances) - 1:
        raise config_error(
            "max_bucket_distance",
            max_distance,
            f"distance {int(distances[differs[0]])} is at the border of two of 'num_buckets'",
        )
