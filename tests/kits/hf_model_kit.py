"""Small random models of transformers, their import, and the comparison of logits."""

import torch
import transformers as hf

import zoo

hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()

PAD, EOS = 0, 2

_BERT = {
    "vocab_size": 31, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12,
}  # fmt: skip
_LLAMA = {
    "vocab_size": 31, "hidden_size": 16, "intermediate_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": EOS,
}  # fmt: skip
_T5 = {
    "vocab_size": 31, "d_model": 8, "d_kv": 3, "d_ff": 12, "num_layers": 2, "num_heads": 2,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20,
    "decoder_start_token_id": PAD, "eos_token_id": EOS,
}  # fmt: skip
_GPT2 = {
    "vocab_size": 31, "n_positions": 24, "n_embd": 8, "n_layer": 2, "n_head": 2,
    "bos_token_id": EOS, "eos_token_id": EOS,
}  # fmt: skip
_WAV2VEC2 = {
    "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12, "conv_dim": [4, 4], "conv_kernel": [5, 3], "conv_stride": [3, 2],
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
    "pad_token_id": 3,
}  # fmt: skip

MODELS = {
    "bert": (hf.BertForMaskedLM, hf.BertConfig(**_BERT, max_position_embeddings=16)),
    "roberta": (
        hf.RobertaForMaskedLM,
        hf.RobertaConfig(**_BERT, max_position_embeddings=18, type_vocab_size=1),
    ),
    "distilbert": (
        hf.DistilBertForMaskedLM,
        hf.DistilBertConfig(
            vocab_size=31, dim=8, n_layers=2, n_heads=1, hidden_dim=12, max_position_embeddings=16
        ),
    ),
    "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config(**_GPT2)),
    "gpt2-untied": (
        hf.GPT2LMHeadModel,
        hf.GPT2Config(**_GPT2, n_inner=20, tie_word_embeddings=False, activation_function="relu"),
    ),
    "marian": (
        hf.MarianMTModel,
        hf.MarianConfig(
            vocab_size=31, d_model=8, encoder_layers=2, decoder_layers=1,
            encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=12,
            decoder_ffn_dim=10, max_position_embeddings=32, pad_token_id=PAD, eos_token_id=EOS,
            decoder_start_token_id=PAD, scale_embedding=True, activation_function="swish",
            forced_eos_token_id=None,
        ),
    ),
    "t5": (hf.T5ForConditionalGeneration, hf.T5Config(**_T5, num_decoder_layers=1)),
    "t5-1.1": (
        hf.T5ForConditionalGeneration,
        hf.T5Config(**_T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    ),
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig(**_LLAMA)),
    "llama-biased": (
        hf.LlamaForCausalLM,
        hf.LlamaConfig(
            **_LLAMA, head_dim=6, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0}, pad_token_id=PAD,
        ),
    ),
    "mistral": (hf.MistralForCausalLM, hf.MistralConfig(**_LLAMA, sliding_window=None)),
    "mistral-one-head": (
        hf.MistralForCausalLM,
        hf.MistralConfig(
            **_LLAMA | {"num_attention_heads": 1, "num_key_value_heads": 1}, sliding_window=None
        ),
    ),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config(**_LLAMA)),
    "vit": (
        hf.ViTForImageClassification,
        hf.ViTConfig(
            hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
            image_size=8, patch_size=4, num_labels=3,
        ),
    ),
    "wav2vec2": (hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**_WAV2VEC2)),
    "wav2vec2-stable": (
        hf.Wav2Vec2ForCTC,
        hf.Wav2Vec2Config(
            **_WAV2VEC2, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True
        ),
    ),
}  # fmt: skip
"""Class and config by name; a name starts with the importer's name."""


def hf_model(name):
    """Return a model with all parameters random, so that each affects the output."""
    cls, config = MODELS[name]
    torch.manual_seed(0)
    return randomize(name, cls(config))


def randomize(name, model):
    """Add noise to all parameters of a model."""
    sinusoids = {n: p.clone() for n, p in model.named_parameters() if "embed_positions" in n}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        for parameter_name, values in sinusoids.items():
            model.get_parameter(parameter_name).copy_(values)
        if name == "marian":
            model.final_logits_bias.copy_(torch.randn(1, model.config.vocab_size))
        if name == "t5-1.1":  # untied, as in the published files
            model.lm_head.weight = torch.nn.Parameter(torch.randn(31, 8))
    return model.eval()


def import_and_load(folder, output_dir):
    """Return the imported model of a folder."""
    return zoo.load(zoo.import_model(folder, output_dir / "model.safetensors")).eval()


def export_and_load(model, output_dir, to):
    """Return the folder of an export, and the model that transformers loads from it."""
    file = zoo.save(model, output_dir / "out.safetensors")
    folder = zoo.export_model(file, output_dir / "out", to=to.partition("-")[0])
    return folder, MODELS[to][0].from_pretrained(folder).eval()


def padded_batch(*, low=3, vocab=31, length=7, pad=PAD):
    """Return three texts of unequal length: tokens [3, length] and their mask."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(low, vocab, (3, length), generator=generator)
    mask = torch.arange(length) < torch.tensor([length, 3, 5])[:, None]
    return tokens.masked_fill(~mask, pad), mask


def prompts(count=50):
    generator = torch.Generator().manual_seed(3)
    return torch.randint(3, 30, (count, 5), generator=generator)


@torch.no_grad()
def compare_logits(name, ours, theirs):
    """Return the logits of both models for the same padded batch, without padding."""
    model_type = ours.spec["model"]["type"].rpartition(":")[2]
    if model_type == "masked-lm":
        tokens, mask = padded_batch(pad=ours.source.padding)
        source, options = tokens, {}
        if name == "bert":
            segments = (torch.arange(tokens.shape[1]) > 2).long().expand_as(tokens)
            source = torch.stack([tokens, segments], dim=-1)
            options = {"token_type_ids": segments}
        expected = theirs(input_ids=tokens, attention_mask=mask, **options).logits
        return ours({"source": source, "target": tokens}).logits[mask], expected[mask]
    if model_type == "language-model":
        tokens, mask = padded_batch(low=0 if ours.embedding.padding is None else 1)
        expected = theirs(input_ids=tokens, attention_mask=mask).logits[:, :-1]
        valid = mask[:, 1:]
        return ours({"target": tokens, "mask": mask}).logits[valid], expected[valid]
    if model_type == "seq2seq":
        pad = ours.source.padding
        source, mask = padded_batch(low=5, length=13, pad=pad)
        target, valid = padded_batch(low=5, length=12, pad=pad)
        target[:, 0] = ours.bos
        expected = theirs(
            input_ids=source, attention_mask=mask, decoder_input_ids=target[:, :-1]
        ).logits
        valid = valid[:, :-1]
        return ours({"source": source, "target": target}).logits[valid], expected[valid]
    if model_type == "ctc-recogniser":
        return _audio_logits(ours, theirs)
    side, channels = theirs.config.image_size, theirs.config.num_channels
    images = torch.randn(3, channels, side, side, generator=torch.Generator().manual_seed(2))
    targets = torch.zeros(3, dtype=torch.long)
    logits = ours({"source": images, "target": targets}).logits
    return logits[:, 0], theirs(pixel_values=images).logits


def _audio_logits(ours, theirs):
    """Compare audio of unequal length; transformers pads only models with layer norm."""
    audio = torch.randn(3, 60, generator=torch.Generator().manual_seed(2))
    lengths = [60, 31, 44]
    for row, length in zip(audio, lengths, strict=True):
        row[length:] = float("nan")
    outputs = ours({"source": audio, "target": torch.ones(3, 2, dtype=torch.long)})
    if theirs.config.feat_extract_norm == "layer":
        mask = (~audio.isnan()).long()
        logits = theirs(input_values=audio.nan_to_num(0.0), attention_mask=mask).logits
        return outputs.logits[outputs.mask], logits[outputs.mask]
    separate = [
        theirs(input_values=row[None, :length]).logits[0]
        for row, length in zip(audio, lengths, strict=True)
    ]
    return outputs.logits[outputs.mask], torch.cat(separate)
