"""Configs of published models give specs with the published number of parameters."""

import contextlib
import copy

import pytest
import torch
import transformers as hf
from hf_models import MODELS, published_experts, published_seq2seq, published_vision
from hf_models.published_seq2seq import WAVE

import zoo
from zoo.registry.component_registry import default_registry

# Compared with copies of the published files: BERT, DISTILBERT, GPT2, LLAMA_3, QWEN2, QWEN3, OPT,
# STARCODER2, GEMMA3, SMOLLM3, DEBERTA_V3, MODERNBERT, MIXTRAL and QWEN3_MOE.
IMPORTERS = {importer.name: importer for importer in default_registry().importers}

BERT = {
    "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": False, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
    "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
    "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0,
    "position_embedding_type": "absolute", "type_vocab_size": 2, "vocab_size": 30522,
}  # fmt: skip
ROBERTA = BERT | {
    "architectures": ["RobertaForMaskedLM"], "bos_token_id": 0, "eos_token_id": 2,
    "layer_norm_eps": 1e-5, "max_position_embeddings": 514, "model_type": "roberta",
    "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 50265,
}  # fmt: skip
DEBERTA_V3 = {  # the published file has no architectures, so it is imported without the head
    "architectures": ["DebertaV2ForMaskedLM"],
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
    "layer_norm_eps": 1e-7, "max_position_embeddings": 512, "max_relative_positions": -1,
    "model_type": "deberta-v2", "norm_rel_ebd": "layer_norm", "num_attention_heads": 12,
    "num_hidden_layers": 12, "pos_att_type": "p2c|c2p", "position_biased_input": False,
    "position_buckets": 256, "relative_attention": True, "share_att_key": True,
    "type_vocab_size": 0, "vocab_size": 128100,
}  # fmt: skip
DISTILBERT = {
    "activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1,
    "dim": 768, "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02,
    "max_position_embeddings": 512, "model_type": "distilbert", "n_heads": 12, "n_layers": 6,
    "pad_token_id": 0, "qa_dropout": 0.1, "seq_classif_dropout": 0.2,
    "sinusoidal_pos_embds": False, "tie_weights_": True, "vocab_size": 30522,
}  # fmt: skip
GPT2 = {
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
    "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12,
    "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": None,
    "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
    "summary_use_proj": True, "vocab_size": 50257,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
}  # fmt: skip
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": None,
    "tie_word_embeddings": False, "torch_dtype": "float16", "vocab_size": 32000,
}  # fmt: skip
MISTRAL = LLAMA | {
    "architectures": ["MistralForCausalLM"], "intermediate_size": 14336,
    "max_position_embeddings": 32768, "model_type": "mistral", "num_key_value_heads": 8,
    "rope_theta": 1000000.0, "sliding_window": None, "vocab_size": 32768,
}  # fmt: skip
QWEN2 = LLAMA | {
    "architectures": ["Qwen2ForCausalLM"], "bos_token_id": 151643, "eos_token_id": 151643,
    "hidden_size": 896, "intermediate_size": 4864, "max_position_embeddings": 131072,
    "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14,
    "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": True,
    "use_sliding_window": False, "vocab_size": 151936,
}  # fmt: skip
LLAMA_3 = LLAMA | {
    "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 128000,
    "eos_token_id": 128001, "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192,
    "max_position_embeddings": 131072, "mlp_bias": False, "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "rope_scaling": {
        "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3",
    },
    "rope_theta": 500000.0, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    "use_cache": True, "vocab_size": 128256,
}  # fmt: skip
QWEN3 = QWEN2 | {
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "eos_token_id": 151645,
    "head_dim": 128, "hidden_size": 1024, "intermediate_size": 3072,
    "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
    "rope_theta": 1000000, "sliding_window": None,
}  # fmt: skip
OLMO2 = LLAMA | {
    "architectures": ["Olmo2ForCausalLM"], "attention_bias": False, "eos_token_id": 100257,
    "model_type": "olmo2", "pad_token_id": 100277, "rms_norm_eps": 1e-06, "rope_theta": 500000,
    "vocab_size": 100352,
}  # fmt: skip
PHI3 = LLAMA | {
    "architectures": ["Phi3ForCausalLM"], "attention_bias": False, "embd_pdrop": 0.0,
    "eos_token_id": 32000, "hidden_size": 3072, "intermediate_size": 8192,
    "max_position_embeddings": 131072, "model_type": "phi3",
    "original_max_position_embeddings": 4096, "pad_token_id": 32000, "resid_pdrop": 0.0,
    "rope_scaling": {"long_factor": [1.1] * 48, "short_factor": [1.0] * 48, "type": "longrope"},
    "rope_theta": 10000.0, "sliding_window": None, "vocab_size": 32064,
}  # fmt: skip
OPT = {
    "activation_dropout": 0.0, "activation_function": "relu",
    "architectures": ["OPTForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 2,
    "do_layer_norm_before": False, "dropout": 0.1, "eos_token_id": 2, "ffn_dim": 4096,
    "hidden_size": 1024, "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 2048,
    "model_type": "opt", "num_attention_heads": 16, "num_hidden_layers": 24, "pad_token_id": 1,
    "prefix": "</s>", "use_cache": True, "vocab_size": 50272, "word_embed_proj_dim": 512,
}  # fmt: skip
BLOOM = {
    "apply_residual_connection_post_layernorm": False, "architectures": ["BloomForCausalLM"],
    "attention_dropout": 0.0, "attention_softmax_in_fp32": True, "bias_dropout_fusion": True,
    "bos_token_id": 1, "eos_token_id": 2, "hidden_dropout": 0.0, "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": True, "model_type": "bloom",
    "n_embed": 1024, "n_inner": None, "n_layer": 24, "num_attention_heads": 16,
    "offset_alibi": 100, "pad_token_id": 3, "pretraining_tp": 1, "skip_bias_add": True,
    "skip_bias_add_qkv": False, "slow_but_exact": False, "unk_token_id": 0, "use_cache": True,
    "vocab_size": 250880,
}  # fmt: skip
STARCODER2 = {
    "architectures": ["Starcoder2ForCausalLM"], "attention_dropout": 0.1, "bos_token_id": 0,
    "embedding_dropout": 0.1, "eos_token_id": 0, "hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 3072, "initializer_range": 0.018042, "intermediate_size": 12288,
    "max_position_embeddings": 16384, "mlp_type": "default", "model_type": "starcoder2",
    "norm_epsilon": 1e-05, "num_attention_heads": 24, "num_hidden_layers": 30,
    "num_key_value_heads": 2, "residual_dropout": 0.1, "rope_theta": 999999.4420358813,
    "sliding_window": 4096, "use_bias": True, "use_cache": True, "vocab_size": 49152,
}  # fmt: skip
GPT_NEO = {
    "activation_function": "gelu_new", "architectures": ["GPTNeoForCausalLM"],
    "attention_dropout": 0, "attention_layers": ["global", "local"] * 6,
    "attention_types": [[["global", "local"], 6]], "bos_token_id": 50256, "embed_dropout": 0,
    "eos_token_id": 50256, "hidden_size": 768, "initializer_range": 0.02,
    "intermediate_size": None, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 2048,
    "model_type": "gpt_neo", "num_heads": 12, "num_layers": 12, "resid_dropout": 0,
    "summary_type": "cls_index", "use_cache": True, "vocab_size": 50257, "window_size": 256,
}  # fmt: skip
PYTHIA = {
    "architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0,
    "hidden_act": "gelu", "hidden_size": 512, "initializer_range": 0.02,
    "intermediate_size": 2048, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
    "model_type": "gpt_neox", "num_attention_heads": 8, "num_hidden_layers": 6,
    "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False,
    "torch_dtype": "float16", "use_parallel_residual": True, "vocab_size": 50304,
}  # fmt: skip
GPTJ = {
    "activation_function": "gelu_new", "architectures": ["GPTJForCausalLM"], "attn_pdrop": 0.0,
    "bos_token_id": 50256, "embd_pdrop": 0.0, "eos_token_id": 50256, "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05, "model_type": "gptj", "n_embd": 4096, "n_head": 16,
    "n_inner": None, "n_layer": 28, "n_positions": 2048, "resid_pdrop": 0.0, "rotary": True,
    "rotary_dim": 64, "scale_attn_weights": True, "summary_type": "cls_index",
    "tie_word_embeddings": False, "use_cache": True, "vocab_size": 50400,
}  # fmt: skip
PHI = {
    "architectures": ["PhiForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 50256,
    "embd_pdrop": 0.0, "eos_token_id": 50256, "hidden_act": "gelu_new", "hidden_size": 2560,
    "initializer_range": 0.02, "intermediate_size": 10240, "layer_norm_eps": 1e-05,
    "max_position_embeddings": 2048, "model_type": "phi", "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 32, "partial_rotary_factor": 0.4,
    "qk_layernorm": False, "resid_pdrop": 0.1, "rope_scaling": None, "rope_theta": 10000.0,
    "tie_word_embeddings": False, "vocab_size": 51200,
}  # fmt: skip
FALCON = {
    "alibi": False, "apply_residual_connection_post_layernorm": False,
    "architectures": ["FalconForCausalLM"], "attention_dropout": 0.0, "bias": False,
    "bos_token_id": 11, "eos_token_id": 11, "hidden_dropout": 0.0, "hidden_size": 4544,
    "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "falcon",
    "multi_query": True, "new_decoder_architecture": False, "num_attention_heads": 71,
    "num_hidden_layers": 32, "parallel_attn": True, "use_cache": True, "vocab_size": 65024,
}  # fmt: skip
GEMMA = LLAMA | {
    "architectures": ["GemmaForCausalLM"], "attention_bias": False, "bos_token_id": 2,
    "eos_token_id": 1, "head_dim": 256, "hidden_act": "gelu", "hidden_activation": None,
    "hidden_size": 2048, "intermediate_size": 16384, "max_position_embeddings": 8192,
    "model_type": "gemma", "num_attention_heads": 8, "num_hidden_layers": 18,
    "num_key_value_heads": 1, "pad_token_id": 0, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
    "tie_word_embeddings": True, "vocab_size": 256000,
}  # fmt: skip
GEMMA2 = GEMMA | {
    "architectures": ["Gemma2ForCausalLM"], "attn_logit_softcapping": 50.0,
    "cache_implementation": "hybrid", "final_logit_softcapping": 30.0,
    "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 2304, "intermediate_size": 9216, "model_type": "gemma2",
    "num_hidden_layers": 26, "num_key_value_heads": 4, "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
}  # fmt: skip
GEMMA3 = GEMMA2 | {
    "architectures": ["Gemma3ForCausalLM"], "attn_logit_softcapping": None,
    "eos_token_id": [1, 106], "final_logit_softcapping": None, "hidden_size": 1152,
    "intermediate_size": 6912, "max_position_embeddings": 32768, "model_type": "gemma3_text",
    "num_attention_heads": 4, "num_key_value_heads": 1, "rope_local_base_freq": 10000,
    "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6,
    "vocab_size": 262144,
}  # fmt: skip
SMOLLM3 = LLAMA_3 | {
    "architectures": ["SmolLM3ForCausalLM"], "bos_token_id": 128000, "eos_token_id": 128012,
    "head_dim": 128, "intermediate_size": 11008, "max_position_embeddings": 65536,
    "max_window_layers": 28, "model_type": "smollm3", "no_rope_layer_interval": 4,
    "no_rope_layers": [1, 1, 1, 0] * 9, "num_attention_heads": 16, "num_hidden_layers": 36,
    "num_key_value_heads": 4, "pad_token_id": 128004, "pretraining_tp": 2, "rms_norm_eps": 1e-06,
    "rope_scaling": None, "rope_theta": 5000000.0, "sliding_window": None,
    "use_sliding_window": False,
}  # fmt: skip
MODERNBERT = {
    "architectures": ["ModernBertForMaskedLM"], "attention_bias": False, "attention_dropout": 0.0,
    "bos_token_id": 50281, "classifier_activation": "gelu", "classifier_bias": False,
    "classifier_dropout": 0.0, "classifier_pooling": "mean", "cls_token_id": 50281,
    "decoder_bias": True, "deterministic_flash_attn": False, "embedding_dropout": 0.0,
    "eos_token_id": 50282, "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0,
    "gradient_checkpointing": False, "hidden_activation": "gelu", "hidden_size": 768,
    "initializer_cutoff_factor": 2.0, "initializer_range": 0.02, "intermediate_size": 1152,
    "layer_norm_eps": 1e-05, "local_attention": 128, "local_rope_theta": 10000.0,
    "max_position_embeddings": 8192, "mlp_bias": False, "mlp_dropout": 0.0,
    "model_type": "modernbert", "norm_bias": False, "norm_eps": 1e-05, "num_attention_heads": 12,
    "num_hidden_layers": 22, "pad_token_id": 50283, "position_embedding_type": "absolute",
    "sep_token_id": 50282, "sparse_pred_ignore_index": -100, "sparse_prediction": False,
    "tie_word_embeddings": True, "torch_dtype": "float32", "vocab_size": 50368,
}  # fmt: skip
# Parameters only in transformers: unused positions, sinusoidal tables, the pretraining mask vector.
EXTRA = {"roberta": 2 * 768, "opt": 2 * 1024, **published_seq2seq.EXTRA, **published_vision.EXTRA}


ALL = [BERT, ROBERTA, DISTILBERT, GPT2, LLAMA, MISTRAL, QWEN2, *published_seq2seq.ALL]
ALL += [LLAMA_3, QWEN3, OLMO2, PHI3, OPT, BLOOM, STARCODER2, GPT_NEO, PYTHIA, GPTJ, PHI]
ALL += [FALCON, GEMMA, GEMMA2, GEMMA3, SMOLLM3, DEBERTA_V3, MODERNBERT]
ALL += [*published_experts.ALL, *published_vision.ALL]
LARGE = ("qwen2_moe", "qwen3_moe", "gpt_oss")  # thousands of modules; Mixtral has experts too
each = pytest.mark.parametrize("config", ALL, ids=lambda config: config["model_type"])


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            config,
            id=config["model_type"],
            marks=pytest.mark.slow if config["model_type"] in LARGE else (),
        )
        for config in ALL
    ],
)
def test_a_published_config_gives_the_published_number_of_parameters(config):
    model_type = config["model_type"]
    options = {k: v for k, v in config.items() if k not in ("model_type", "architectures")}
    with torch.device("meta"):
        theirs = MODELS[model_type][0](hf.CONFIG_MAPPING[model_type](**options))
    count = sum(parameter.numel() for parameter in theirs.parameters())
    # final_logits_bias is a buffer in transformers, a parameter in the zoo.
    count += config["vocab_size"] if hasattr(theirs, "final_logits_bias") else 0
    assert zoo.check(IMPORTERS[model_type].spec(config)).parameters == count - EXTRA.get(
        model_type, 0
    )


@pytest.mark.parametrize(
    ("config", "shipped", "difference"),
    [
        (BERT, "bert-base", {}),
        (GPT2, "gpt2-small", {"bos": None}),
        (WAVE, "wav2vec2-base", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_shipped_specs_equal_those_of_published_configs(config, shipped, difference):
    spec = IMPORTERS[config["model_type"]].spec(config)
    ours = zoo.load_spec(shipped).resolve()["model"]
    assert zoo.load_spec(spec).resolve()["model"] == ours | difference


def test_specs_do_not_change_the_templates_of_importers():
    templates = {name: importer.template for name, importer in IMPORTERS.items()}
    before = copy.deepcopy(templates)
    parts = [(hf.ViTConfig(), hf.GPT2Config()), (hf.DeiTConfig(), hf.TrOCRConfig())]
    for encoder, decoder in parts:
        config = hf.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
        with contextlib.suppress(zoo.ZooError):
            IMPORTERS["vision-encoder-decoder"].spec(config.to_dict())
    for config in ALL:
        IMPORTERS[config["model_type"]].spec(config)
    assert templates == before


INVALID = [None, True, -1, 0, 3, 1e400, "", "x", [], [[]], [None], {}, {"rope_type": []}, {"a": {}}]
KEYS = ["quantization_config", "rope_scaling", "rope_parameters", "layer_types", "num_labels",
        "sentence", "untied", "head_dim", "n_inner", "feed_forward_proj", "id2label",
        "decoder_vocab_size", "image_size", "scale_decoder_outputs"]  # fmt: skip


@each
def test_any_value_gives_a_spec_or_a_zoo_error(config):
    importer = IMPORTERS[config["model_type"]]
    for key in [*config, *KEYS]:
        for value in INVALID:
            with contextlib.suppress(zoo.ZooError):
                importer.spec({**config, key: value})
