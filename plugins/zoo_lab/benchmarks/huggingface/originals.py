"""Random models of transformers in usual shapes, and inputs for them and their imports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

SAMPLES_PER_POSITION = 320
"""Samples of audio for each position of Whisper's encoder."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a model and of its batch."""

    layers: int
    dim: int
    vocab: int
    batch: int
    length: int

    @property
    def heads(self) -> int:
        """Heads of width 64, at least two."""
        return max(2, self.dim // 64)

    def tokens(self, length: int) -> Tensor:
        """Return random tokens that are not special."""
        return torch.randint(5, self.vocab, (self.batch, length))


@dataclass(frozen=True)
class Original:
    """A model of transformers.

    Attributes:
        model: the model, with random weights.
        inputs: the arguments of its forward pass.
        batch: the batch of the imported model that gives the same outputs.
        prompt: the arguments of its `generate`; empty if it does not generate.
        raw: the inputs of `zoo.generate`.
        preprocess: computes further arguments of both from the raw inputs on a device, if the
            imported model does this in its forward pass.
    """

    model: Any
    inputs: Mapping[str, Tensor]
    batch: Mapping[str, Tensor]
    prompt: Mapping[str, Tensor]
    raw: Any = None
    preprocess: Callable[[torch.device], Mapping[str, Tensor]] = lambda _: {}


def llama(shape: Shape) -> Original:
    """A decoder with rotary positions, a gate and a quarter of the heads for keys and values."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.dim,
        intermediate_size=4 * shape.dim,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=max(1, shape.heads // 4),
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    tokens = shape.tokens(shape.length + 1)
    prompt = tokens[:, :-1]
    return Original(
        LlamaForCausalLM(config),
        {"input_ids": prompt},
        {"target": tokens, "mask": torch.ones_like(tokens, dtype=torch.bool)},
        {"input_ids": prompt, "attention_mask": torch.ones_like(prompt)},
        prompt.tolist(),
    )


def bert(shape: Shape) -> Original:
    """A bare encoder with learned positions."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.dim,
        intermediate_size=4 * shape.dim,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        max_position_embeddings=max(512, shape.length),
    )
    tokens = shape.tokens(shape.length)
    segments = torch.zeros_like(tokens)
    return Original(
        BertModel(config),
        {"input_ids": tokens, "token_type_ids": segments},
        {"source": torch.stack([tokens, segments], dim=-1)},
        {},
    )


def whisper(shape: Shape) -> Original:
    """Audio of the given length in positions of the encoder, and a target of a quarter of it.

    Both compute the features of the audio at each call.
    """
    from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=shape.vocab,
        d_model=shape.dim,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=4 * shape.dim,
        decoder_ffn_dim=4 * shape.dim,
        max_source_positions=shape.length,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    samples = SAMPLES_PER_POSITION * shape.length
    audio = torch.randn(shape.batch, samples)
    waveforms = list(audio.numpy())
    extractor = WhisperFeatureExtractor()

    def preprocess(device: torch.device) -> dict[str, Tensor]:
        features = extractor(
            waveforms,
            sampling_rate=16000,
            max_length=samples,
            return_tensors="pt",
            device=str(device),
        )
        return {"input_features": features.input_features}

    target = shape.tokens(max(2, shape.length // 4))
    target[:, 0] = 3
    return Original(
        WhisperForConditionalGeneration(config),
        {"decoder_input_ids": target[:, :-1]},
        {"source": audio, "target": target},
        {},
        [(each, 16000) for each in waveforms],
        preprocess,
    )


ORIGINALS = {"llama": llama, "bert": bert, "whisper": whisper}
