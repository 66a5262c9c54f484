"""Tiny random models of transformers, saved as it saves them, and the same brought in."""

import torch
import transformers as hf

import zoo

hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()

PAD, EOS = 0, 2

_READER = {
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
_WAVE = {
    "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12, "conv_dim": [4, 4], "conv_kernel": [5, 3], "conv_stride": [3, 2],
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
    "pad_token_id": 3,
}  # fmt: skip

MODELS = {
    "bert": (hf.BertForMaskedLM, hf.BertConfig(**_READER, max_position_embeddings=16)),
    "roberta": (
        hf.RobertaForMaskedLM,
        hf.RobertaConfig(**_READER, max_position_embeddings=18, type_vocab_size=1),
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
    "wav2vec2": (hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**_WAVE)),
    "wav2vec2-stable": (
        hf.Wav2Vec2ForCTC,
        hf.Wav2Vec2Config(
            **_WAVE, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True
        ),
    ),
}  # fmt: skip
"""By a name that begins with the importer's."""


def hf_model(name):
    """Random throughout: no bias is zero and no scale one, so that every parameter matters."""
    cls, config = MODELS[name]
    torch.manual_seed(0)
    model = cls(config)
    waves = {n: w.clone() for n, w in model.named_parameters() if "embed_positions" in n}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        for wave, values in waves.items():
            model.get_parameter(wave).copy_(values)
        if name == "marian":
            model.final_logits_bias.copy_(torch.randn(1, 31))
        if name == "t5-1.1":  # as in the published files, though nothing unties it here
            model.lm_head.weight = torch.nn.Parameter(torch.randn(31, 8))
    return model.eval()


def import_and_load(folder, where):
    """The model of a folder, through the function that `zoo import` calls."""
    return zoo.load(zoo.import_model(folder, where / "model.safetensors")).eval()


def export_and_load(model, where, to):
    """A model of the zoo as transformers' own class finds it in an export."""
    file = zoo.save(model, where / "out.safetensors")
    folder = zoo.export_model(file, where / "out", to=to.partition("-")[0])
    return folder, MODELS[to][0].from_pretrained(folder).eval()


def padded_batch(*, lowest=3, vocab=31, length=7, pad=PAD):
    """Three texts of unequal length: tokens [3, length], and where they are real."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(lowest, vocab, (3, length), generator=generator)
    mask = torch.arange(length) < torch.tensor([length, 3, 5])[:, None]
    return tokens.masked_fill(~mask, pad), mask


def prompts(count=50):
    generator = torch.Generator().manual_seed(3)
    return torch.randint(3, 30, (count, 5), generator=generator)


@torch.no_grad()
def compare_logits(name, ours, theirs):
    """What the two say to the same batch with padding, where it counts."""
    kind = ours.spec["model"]["type"].rpartition(":")[2]
    if kind == "masked-lm":
        tokens, mask = padded_batch(pad=ours.source.padding)
        source, told = tokens, {}
        if name == "bert":
            second = (torch.arange(tokens.shape[1]) > 2).long().expand_as(tokens)
            source, told = torch.stack([tokens, second], dim=-1), {"token_type_ids": second}
        expected = theirs(input_ids=tokens, attention_mask=mask, **told).logits
        return ours({"source": source, "target": tokens}).logits[mask], expected[mask]
    if kind == "language-model":
        tokens, mask = padded_batch(lowest=0 if ours.embedding.padding is None else 1)
        expected = theirs(input_ids=tokens, attention_mask=mask).logits[:, :-1]
        seen = mask[:, 1:]
        return ours({"target": tokens, "mask": mask}).logits[seen], expected[seen]
    if kind == "seq2seq":
        source, mask = padded_batch(length=13)
        target, _ = padded_batch(length=12)
        target[:, 0] = PAD
        told = target[:, :-1]
        expected = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=told).logits
        return ours({"source": source, "target": target}).logits, expected
    if kind == "ctc-recogniser":
        return _audio_logits(ours, theirs)
    images = torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    targets = torch.zeros(3, dtype=torch.long)
    logits = ours({"source": images, "target": targets}).logits
    return logits[:, 0], theirs(pixel_values=images).logits


def _audio_logits(ours, theirs):
    """Sounds of unequal length; transformers hears one by one what it may not pad."""
    sounds = torch.randn(3, 60, generator=torch.Generator().manual_seed(2))
    lengths = [60, 31, 44]
    for sound, length in zip(sounds, lengths, strict=True):
        sound[length:] = float("nan")
    said = ours({"source": sounds, "target": torch.ones(3, 2, dtype=torch.long)})
    if theirs.config.feat_extract_norm == "layer":
        heard = sounds.nan_to_num(0.0)
        logits = theirs(input_values=heard, attention_mask=(~sounds.isnan()).long()).logits
        return said.logits[said.mask], logits[said.mask]
    alone = [
        theirs(input_values=sound[None, :length]).logits[0]
        for sound, length in zip(sounds, lengths, strict=True)
    ]
    return said.logits[said.mask], torch.cat(alone)
