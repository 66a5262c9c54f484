"""OLMo 2: norms on the output of sublayers, and of all heads of queries and keys."""

from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.causal.query_key_norm import normed_fields, normed_template
from zoo_huggingface.config_fields import RequiredValue


class Olmo2(Llama):
    """OLMo 2 (OLMo Team 2024); its tokenizer adds no start token."""

    name = "olmo2"
    model_classes = ("Olmo2ForCausalLM",)
    map_name = "olmo2"
    adds_bos = False
    unchecked_spec_paths = ("model.bos",)
    template = normed_template(over="all", place="output")
    fields = normed_fields(1e-5)
    required_values = (
        *Llama.required_values,
        RequiredValue("mlp_bias", False, "OLMo 2 has no bias in its feed-forward layers"),
    )
