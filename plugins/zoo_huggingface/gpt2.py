"""GPT-2."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.settings import ACTIVATIONS, Only, Setting, at, valued
from zoo_huggingface.speakers import Speaker


class Gpt2(Speaker):
    """GPT-2, whose texts begin as they are (Radford 2019)."""

    name = "gpt2"
    heads = ("GPT2LMHeadModel",)
    table = "transformer.wte.weight"
    begins = False
    tied = True
    loose = ("model.bos",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "language-model",
            "embedding": {"type": "token"},
            "decoder": {
                "type": "transformer",
                "attention": {"scorer": "scaled-dot", "align": {"type": "soft"}},
                "feed_forward": {},
                "norm": {"place": "pre"},
                "position": {"type": "learned"},
            },
        },
        "sampler": "greedy",
        "objective": "cross-entropy",
    }
    settings = (
        Setting("vocab_size", "model.embedding.vocab"),
        Setting("n_embd", "model.embedding.dim"),
        Setting("n_layer", "model.decoder.layers"),
        Setting("n_head", "model.decoder.attention.heads"),
        Setting("n_positions", "model.decoder.position.length"),
        Setting(
            "activation_function",
            "model.decoder.feed_forward.activation",
            str,
            "gelu_new",
            words=ACTIVATIONS,
        ),
        Setting("layer_norm_epsilon", "model.decoder.norm.eps", float, 1e-5),
        Setting("resid_pdrop", "model.decoder.dropout", float, 0.1),
        Setting("attn_pdrop", "model.decoder.attention.align.dropout", float, 0.1),
        Setting("initializer_range", "model.embedding.std", float, 0.02),
    )
    only = (
        Only("scale_attn_weights", True, "scores are divided by the root of the width here"),
        Only("scale_attn_by_inverse_layer_idx", False, "all layers have one scale here"),
        Only("add_cross_attention", False, "the zoo takes it without a source"),
    )

    def adapt(self, made: dict[str, Any], config: Config) -> None:
        super().adapt(made, config)
        inner = valued(config, "n_inner", int, None)
        width = made["model"]["embedding"]["dim"]
        made["model"]["decoder"]["feed_forward"]["hidden"] = inner or 4 * width

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().words(made, spec)
        made["n_inner"] = at(spec, "model.decoder.feed_forward.hidden")
