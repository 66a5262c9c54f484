"""Vaswani et al. 2017: scaled dot-product attention and the Transformer."""

from collections.abc import Sequence

from zoo.plugin import Component, hookimpl
from zoo_transformer.attention_pooling import AttentionPooledEncoder
from zoo_transformer.clamped_swiglu import ClampedSwiGLU
from zoo_transformer.experts import Experts
from zoo_transformer.normed_pooling import NormedPoolingEncoder
from zoo_transformer.scaled_dot import ScaledDot
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_transformer.transformer_encoder import TransformerEncoder


@hookimpl
def zoo_components() -> Sequence[type[Component]]:
    return [
        ScaledDot,
        TransformerEncoder,
        AttentionPooledEncoder,
        NormedPoolingEncoder,
        TransformerDecoder,
        Experts,
        ClampedSwiGLU,
    ]
