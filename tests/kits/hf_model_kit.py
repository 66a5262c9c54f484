"""Small random models of transformers, their import, and the comparison of logits."""

import copy
import warnings
from itertools import takewhile

import torch
import transformers as hf
from hf_filter_bank_kit import filter_bank_logits, filter_bank_tokens
from hf_models import ENCODERS, EOS, MODELS, PAD

import zoo
from zoo_sampling.greedy import Greedy

hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()

MAX_LENGTH = 12
"""Number of tokens to generate."""


def hf_model(name):
    """Return a model with all parameters random, so that each affects the output."""
    cls, config = MODELS[name]
    torch.manual_seed(0)
    return randomize(name, cls(copy.deepcopy(config)))  # a model changes the dtype of its own


def randomize(name, model):
    """Add noise to all parameters of a model."""
    sinusoids = {n: p.clone() for n, p in model.named_parameters() if "embed_positions" in n}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        for parameter_name, values in sinusoids.items():
            model.get_parameter(parameter_name).copy_(values)
        if hasattr(model, "final_logits_bias"):
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
    folder = zoo.export_model(file, output_dir / "out", to=MODELS[to][1].model_type)
    return folder, load_original(to, folder)


def load_original(name, folder):
    """Return the model that transformers loads from a folder."""
    model = MODELS[name][0].from_pretrained(folder).eval()
    for module in model.modules():
        if isinstance(getattr(module, "weights", None), torch.Tensor) and module.weights.is_meta:
            module.weights = None  # transformers does not compute the sinusoids of TrOCR again
    return model


def padded_batch(*, low=3, vocab=31, length=7, pad=PAD):
    """Return three texts of unequal length: tokens [3, length] and their mask."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(low, vocab, (3, length), generator=generator)
    tokens = tokens.masked_fill(tokens == pad, low + (pad == low))  # texts contain no padding
    mask = torch.arange(length) < torch.tensor([length, 3, 5])[:, None]
    return tokens.masked_fill(~mask, pad), mask


def prompts(count=50, low=3):
    """Return prompts [count, 5] of tokens from `low` on."""
    generator = torch.Generator().manual_seed(3)
    return torch.randint(low, 30, (count, 5), generator=generator)


def generate_transformers(model, tokens, *, eos=EOS, **options):
    """Return the tokens that transformers generates, without the end token."""
    prompt = 1 if model.config.is_encoder_decoder else tokens.shape[1]
    options |= suppressed_padding(model)
    if not model.config.is_encoder_decoder:
        options = {"pad_token_id": eos, **options}
    with torch.no_grad():
        rows = model.generate(
            input_ids=tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=MAX_LENGTH,
            do_sample=False, eos_token_id=eos, **options,
        )[:, prompt:].tolist()  # fmt: skip
    return [row[: row.index(eos)] if eos in row else row for row in rows]


def suppressed_padding(model):
    """Return the options with which transformers generates no padding, where the zoo does not."""
    if model.config.model_type in ("m2m_100", "speech_to_text", "vision-encoder-decoder"):
        pad = model.generation_config.pad_token_id
        return {} if pad == model.generation_config.eos_token_id else {"suppress_tokens": [pad]}
    return {}


def generate_zoo(model, rows, sampler="greedy"):
    answers = zoo.generate(
        model, [row.tolist() for row in rows], sampler=sampler, max_length=MAX_LENGTH
    )
    return [ranked[0].tokens for ranked in answers]


def with_bos(model, tokens):
    """Return prompts that begin with the start token, if the model has one."""
    if model.generation_input == "prompt" and model.bos is not None:
        tokens = tokens.clone()
        tokens[:, 0] = model.bos
    return tokens


def generate_both(ours, theirs, tokens):
    """Return the tokens that both models generate greedily."""
    if theirs.config.model_type == "speech_to_text":
        return filter_bank_tokens(ours, theirs, len(tokens), MAX_LENGTH)
    if theirs.main_input_name == "input_features":
        return generate_spoken(ours, theirs, len(tokens))
    if theirs.main_input_name == "pixel_values":
        return generate_captions(ours, theirs, len(tokens))
    tokens = with_bos(ours, tokens)
    expected = generate_transformers(theirs, tokens, eos=theirs.config.eos_token_id)
    return generate_zoo(ours, tokens), expected


@torch.no_grad()
def generate_spoken(ours, theirs, count, **options):
    """Return the tokens that Whisper of both generates greedily, without the end token."""
    audio, features = speech(theirs, count)
    inputs = [(samples.numpy(), 16000) for samples in audio]
    answers = zoo.generate(ours, inputs, max_length=MAX_LENGTH, **options)
    eos = theirs.config.eos_token_id
    rows = theirs.generate(features, max_new_tokens=MAX_LENGTH, do_sample=False).tolist()
    expected = [list(takewhile(lambda token: token != eos, row)) for row in rows]
    return [ranked[0].tokens for ranked in answers], expected


@torch.no_grad()
def generate_captions(ours, theirs, count):
    """Return the tokens that both models generate for images greedily, without the end token."""
    images = random_images(image_config(theirs), count)
    zoo.accelerate(ours)
    answers = ours.generate({"source": images}, Greedy(), max_length=MAX_LENGTH).tokens[:, 0]
    options = suppressed_padding(theirs)
    rows = theirs.generate(images, max_new_tokens=MAX_LENGTH, do_sample=False, **options)
    return tuple(
        [list(takewhile(lambda token: token != ours.eos, row)) for row in tokens.tolist()]
        for tokens in (answers, rows[:, 1:])
    )


def image_config(theirs):
    """Return the config of the image encoder of a model that generates text."""
    config = theirs.config
    return config.vision_config if config.model_type == "blip" else config.encoder


def random_images(config, count=3):
    """Return images of the size of a config."""
    channels = 3 if config.model_type == "blip_vision_model" else config.num_channels
    shape = (count, channels, config.image_size, config.image_size)
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


@torch.no_grad()
def compare_logits(name, ours, theirs):
    """Return the logits of both models for the same padded batch, without padding."""
    model_type = ours.spec["model"]["type"].rpartition(":")[2]
    is_text = model_type == "features" and ours.source.vocab is not None
    if theirs.config.model_type in ENCODERS or is_text:
        return _encoder_outputs(ours, theirs)
    if model_type == "language-model":
        tokens, mask = padded_batch(low=0 if ours.embedding.padding is None else 1)
        expected = theirs(input_ids=tokens, attention_mask=mask).logits[:, :-1]
        valid = mask[:, 1:]
        return ours({"target": tokens, "mask": mask}).logits[valid], expected[valid]
    if name == "whisper":
        return _spoken_logits(ours, theirs)
    if name == "speech_to_text":
        return filter_bank_logits(ours, theirs, *padded_batch(low=5, length=12, pad=ours.pad))
    if model_type == "seq2seq" and theirs.main_input_name == "pixel_values":
        return _caption_logits(ours, theirs)
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
    if "conv_stride" in theirs.config:
        return _audio_outputs(ours, theirs)
    if model_type == "two-towers":
        return _tower_logits(ours, theirs)
    if "text" in theirs.config.model_type:
        return _text_tower_outputs(ours, theirs)
    images = random_images(theirs.config)
    targets = torch.zeros(3, dtype=torch.long)
    if model_type == "one-tower":
        return _join_outputs(ours({"source": images}), theirs(pixel_values=images))
    if model_type == "features":
        return _image_features(ours({"source": images}), theirs(pixel_values=images))
    logits = ours({"source": images, "target": targets}).logits
    return logits[:, 0], theirs(pixel_values=images).logits


def _image_features(outputs, expected):
    """Return the states of both models, with the pooled vectors if they are imported."""
    pairs = [(outputs.logits, expected.last_hidden_state)]
    if "pooled" in outputs.extras:
        pairs.append((outputs.extras["pooled"], expected.pooler_output))
    flat = ([tensor.flatten() for tensor in side] for side in zip(*pairs, strict=True))
    return tuple(map(torch.cat, flat))


def speech(theirs, count=3):
    """Return audio [count, L] and the features that Whisper of transformers computes of it."""
    samples = 2 * theirs.config.max_source_positions * 160
    audio = torch.randn(count, samples, generator=torch.Generator().manual_seed(2))
    audio[0, samples // 2 :] = 0.0
    extractor = hf.WhisperFeatureExtractor(feature_size=theirs.config.num_mel_bins)
    features = extractor(
        list(audio.numpy()), sampling_rate=16000, max_length=samples, return_tensors="pt"
    )
    return audio, features.input_features


def _spoken_logits(ours, theirs):
    """Compare targets of unequal length; transformers does not mask audio."""
    audio, features = speech(theirs)
    target, valid = padded_batch(low=5, length=12, pad=ours.pad)
    target[:, 0] = ours.bos
    expected = theirs(input_features=features, decoder_input_ids=target[:, :-1]).logits
    valid = valid[:, :-1]
    return ours({"source": audio, "target": target}).logits[valid], expected[valid]


def _caption_logits(ours, theirs):
    """Compare targets of unequal length."""
    images = random_images(image_config(theirs))
    target, valid = padded_batch(low=5, length=12, pad=ours.pad)
    target[:, 0] = ours.bos
    key = "input_ids" if theirs.config.model_type == "blip" else "decoder_input_ids"
    expected = theirs(pixel_values=images, **{key: target[:, :-1]}).logits
    valid = valid[:, :-1]
    return ours({"source": images, "target": target}).logits[valid], expected[valid]


def _encoder_outputs(ours, theirs):
    """Compare the outputs of encoders of texts: of each token, or of each text."""
    pad = ours.source.padding
    tokens, mask = padded_batch(pad=PAD if pad is None else pad)
    source, options = tokens, {}
    if ours.source.segments is not None and ours.source.segments.num_embeddings > 1:
        segments = (torch.arange(tokens.shape[1]) > 2).long().expand_as(tokens)
        source = torch.stack([tokens, segments], dim=-1)
        options = {"token_type_ids": segments}
    example = ours.example(3, tokens.shape[1], torch.Generator().manual_seed(0))
    actual = ours({**example, "source": source, **({"mask": mask} if pad is None else {})})
    expected = theirs(input_ids=tokens, attention_mask=mask, **options)
    if ours.name in ("classifier", "regressor"):
        return actual.logits[:, 0], expected.logits
    if ours.name != "features":
        return actual.logits[mask], expected.logits[mask]
    pairs = [(actual.logits[mask], expected.last_hidden_state[mask])]
    if "pooled" in actual.extras:
        pairs.append((actual.extras["pooled"], expected.pooler_output))
    return tuple(torch.cat(tensors) for tensors in zip(*pairs, strict=True))


def _text_tower_outputs(ours, theirs):
    """Compare texts of unequal length; SigLIP attends to padding."""
    tokens, mask = padded_batch(low=6, vocab=30)
    if theirs.config.model_type == "siglip_text_model":
        return _join_outputs(ours({"source": tokens}), theirs(input_ids=tokens))
    eos = theirs.config.eos_token_id
    tokens[torch.arange(3), mask.sum(dim=1) - 1] = 30 if eos == 2 else eos  # 2: the highest token
    expected = theirs(input_ids=tokens, attention_mask=mask)
    return _join_outputs(ours({"source": tokens}), expected, mask)


def _join_outputs(outputs, expected, mask=...):
    """Return states and vectors of both models in one tensor each."""
    names = ("pooler_output", "image_embeds", "text_embeds")
    vectors = next(found for name in names if (found := getattr(expected, name, None)) is not None)
    return (
        torch.cat([outputs.logits[mask].flatten(), outputs.extras["vectors"].flatten()]),
        torch.cat([expected.last_hidden_state[mask].flatten(), vectors.flatten()]),
    )


def _tower_logits(ours, theirs):
    """Compare the scores of three images and three texts of unequal length."""
    vision, text = theirs.config.vision_config, theirs.config.text_config
    images = random_images(vision)
    tokens, mask = padded_batch(low=6, vocab=30)
    if theirs.config.model_type == "siglip":  # attends to padding
        logits = ours({"source": images, "target": tokens}).logits[:, 0]
        return logits, theirs(pixel_values=images, input_ids=tokens).logits_per_image
    end = 30 if text.eos_token_id == 2 else text.eos_token_id  # 2: the highest token
    tokens[torch.arange(3), mask.sum(dim=1) - 1] = end
    logits = ours({"source": images, "target": tokens}).logits[:, 0]
    expected = theirs(pixel_values=images, input_ids=tokens, attention_mask=mask)
    return logits, expected.logits_per_image


def _audio_outputs(ours, theirs):
    """Compare audio of unequal length; transformers pads only models with layer norm."""
    audio = torch.randn(3, 60, generator=torch.Generator().manual_seed(2))
    lengths = [60, 31, 44]
    for row, length in zip(audio, lengths, strict=True):
        row[length:] = float("nan")
    example = ours.example(3, 2, torch.Generator().manual_seed(0))
    outputs = ours({**example, "source": audio})
    actual = outputs.logits[outputs.mask]
    if theirs.config.feat_extract_norm == "layer":
        mask = (~audio.isnan()).long()
        with warnings.catch_warnings():  # torch deprecates the two masks of WavLM
            warnings.filterwarnings("ignore", "Support for mismatched key_padding_mask")
            expected = _first(theirs(input_values=audio.nan_to_num(0.0), attention_mask=mask))
        return actual, expected if expected.dim() == 2 else expected[outputs.mask]
    separate = [
        _first(theirs(input_values=row[None, :length])).flatten(0, -2)
        for row, length in zip(audio, lengths, strict=True)
    ]
    return actual, torch.cat(separate)


def _first(outputs):
    return outputs.logits if hasattr(outputs, "logits") else outputs.last_hidden_state
