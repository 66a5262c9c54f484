"""The same weights in the zoo and in HF transformers give the same logits."""

import pytest
import torch
import transformers as hf

import zoo

ATOL = 1e-5


def _zoo(model, **sections):
    return zoo.compose({"zoo": 1, "name": "parity", "model": model, **sections}).eval()


def _fill(model, tensors):
    """Every parameter of the model gets a tensor, and every tensor a parameter."""
    own = dict(model.named_parameters())
    assert own.keys() == tensors.keys()
    with torch.no_grad():
        for name, tensor in tensors.items():
            assert own[name].shape == tensor.shape, name
            own[name].copy_(tensor)


def _linear(theirs, ours, source, *, transposed=False):
    """The tensors of one linear map, under our name."""
    out = {}
    for part in ("weight", "bias"):
        if f"{theirs}.{part}" in source:
            tensor = source[f"{theirs}.{part}"]
            out[f"{ours}.{part}"] = tensor.T if transposed and part == "weight" else tensor
    assert out, theirs
    return out


def _random(model):
    """No bias stays zero and no scale one, so that every parameter matters."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def _padded(vocab, *, lowest=3, batch=3, length=7):
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(lowest, vocab, (batch, length), generator=generator)
    mask = torch.arange(length) < torch.tensor([length, 3, 5])[:, None]
    return tokens.masked_fill(~mask, 0), mask


def test_bert_predicts_the_same_masked_tokens():
    config = hf.BertConfig(
        vocab_size=31,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=16,
    )
    theirs = _random(hf.BertForMaskedLM(config))
    ours = _zoo({
        "type": "masked-lm",
        "source": {"type": "token", "vocab": 31, "dim": 8},
        "encoder": {
            "type": "transformer",
            "layers": 2,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
            "feed_forward": {"hidden": 12, "activation": "gelu"},
            "norm": {"eps": 1e-12, "embedding": True},
            "position": {"type": "learned", "length": 16},
        },
    })  # fmt: skip
    state = theirs.state_dict()
    embeddings, head = "bert.embeddings", "cls.predictions"
    first_segment = state[f"{embeddings}.token_type_embeddings.weight"][0]
    tensors = {
        "source.table.weight": state[f"{embeddings}.word_embeddings.weight"],
        "encoder.position.table.weight": state[f"{embeddings}.position_embeddings.weight"]
        + first_segment,
        "bias": state[f"{head}.bias"],
        **_linear(f"{embeddings}.LayerNorm", "encoder.embedding_norm", state),
        **_linear(f"{head}.transform.dense", "transform", state),
        **_linear(f"{head}.transform.LayerNorm", "norm", state),
    }
    for i in range(2):
        there, here = f"bert.encoder.layer.{i}", f"encoder.blocks.{i}"
        for name in ("query", "key", "value"):
            tensors |= _linear(f"{there}.attention.self.{name}", f"{here}.attention.{name}", state)
        tensors |= _linear(f"{there}.attention.output.dense", f"{here}.attention.out", state)
        tensors |= _linear(f"{there}.attention.output.LayerNorm", f"{here}.attention_norm", state)
        tensors |= _linear(f"{there}.intermediate.dense", f"{here}.feed_forward.up", state)
        tensors |= _linear(f"{there}.output.dense", f"{here}.feed_forward.down", state)
        tensors |= _linear(f"{there}.output.LayerNorm", f"{here}.feed_forward_norm", state)
    _fill(ours, tensors)
    tokens, mask = _padded(31)
    expected = theirs(input_ids=tokens, attention_mask=mask).logits
    actual = ours({"source": tokens, "target": tokens}).logits
    torch.testing.assert_close(actual[mask], expected[mask], atol=ATOL, rtol=0)


@pytest.fixture(scope="module")
def gpt2():
    config = hf.GPT2Config(vocab_size=31, n_positions=24, n_embd=8, n_layer=2, n_head=2)
    theirs = _random(hf.GPT2LMHeadModel(config))
    ours = _zoo({
        "type": "language-model",
        "embedding": {"type": "token", "vocab": 31, "dim": 8},
        "bos": 30,
        "eos": 30,
        "decoder": {
            "type": "transformer",
            "layers": 2,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
            "feed_forward": {"hidden": 32, "activation": "gelu-tanh"},
            "norm": {"place": "pre"},
            "position": {"type": "learned", "length": 24},
            "output": {"tied": True},
        },
    })  # fmt: skip
    state = theirs.state_dict()
    tensors = {
        "embedding.table.weight": state["transformer.wte.weight"],
        "decoder.position.table.weight": state["transformer.wpe.weight"],
        **_linear("transformer.ln_f", "decoder.final_norm", state),
    }
    for i in range(2):
        there, here = f"transformer.h.{i}", f"decoder.blocks.{i}"
        fused = _linear(f"{there}.attn.c_attn", "fused", state, transposed=True)
        for at, name in enumerate(("query", "key", "value")):
            for part in ("weight", "bias"):
                piece = fused[f"fused.{part}"][8 * at : 8 * at + 8]
                tensors[f"{here}.attention.{name}.{part}"] = piece
        tensors |= _linear(f"{there}.ln_1", f"{here}.attention_norm", state)
        tensors |= _linear(f"{there}.ln_2", f"{here}.feed_forward_norm", state)
        for a, b in (
            ("attn.c_proj", "attention.out"),
            ("mlp.c_fc", "feed_forward.up"),
            ("mlp.c_proj", "feed_forward.down"),
        ):
            tensors |= _linear(f"{there}.{a}", f"{here}.{b}", state, transposed=True)
    _fill(ours, tensors)
    return ours, theirs


def test_gpt2_predicts_the_same_next_tokens(gpt2):
    ours, theirs = gpt2
    tokens, mask = _padded(31)
    expected = theirs(input_ids=tokens).logits[:, :-1]
    actual = ours({"target": tokens}).logits
    seen = mask[:, :-1]
    torch.testing.assert_close(actual[seen], expected[seen], atol=ATOL, rtol=0)


@pytest.fixture(scope="module")
def marian():
    config = hf.MarianConfig(
        vocab_size=31, d_model=8, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=12, decoder_ffn_dim=12,
        max_position_embeddings=32, pad_token_id=0, eos_token_id=2, decoder_start_token_id=0,
        scale_embedding=True, activation_function="silu",
    )  # fmt: skip
    theirs = hf.MarianMTModel(config)
    waves = theirs.model.encoder.embed_positions.weight.clone()
    _random(theirs)
    with torch.no_grad():
        theirs.final_logits_bias.copy_(torch.randn(1, 31))
        for side in (theirs.model.encoder, theirs.model.decoder):
            side.embed_positions.weight.copy_(waves)
    part = {
        "type": "transformer",
        "layers": 2,
        "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
        "feed_forward": {"hidden": 12, "activation": "silu"},
        "position": {"type": "sinusoidal", "layout": "halves"},
    }
    ours = _zoo({
        "type": "seq2seq",
        "source": {"type": "token", "vocab": 31, "dim": 8, "scaled": True},
        "shared": True,
        "bos": 0,
        "eos": 2,
        "encoder": part,
        "decoder": {**part, "output": {"tied": True, "bias": True}},
    })  # fmt: skip
    state = theirs.state_dict()
    tensors = {
        "source.table.weight": state["model.shared.weight"],
        "decoder.output.bias": state["final_logits_bias"][0],
    }
    for side in ("encoder", "decoder"):
        for i in range(2):
            there, here = f"model.{side}.layers.{i}", f"{side}.blocks.{i}"
            looks = {"self_attn": "attention", "encoder_attn": "cross"}
            for a, b in list(looks.items())[: 2 if side == "decoder" else 1]:
                tensors |= _linear(f"{there}.{a}_layer_norm", f"{here}.{b}_norm", state)
                for name in ("query", "key", "value", "out"):
                    short = "out_proj" if name == "out" else f"{name[0]}_proj"
                    tensors |= _linear(f"{there}.{a}.{short}", f"{here}.{b}.{name}", state)
            tensors |= _linear(f"{there}.fc1", f"{here}.feed_forward.up", state)
            tensors |= _linear(f"{there}.fc2", f"{here}.feed_forward.down", state)
            tensors |= _linear(f"{there}.final_layer_norm", f"{here}.feed_forward_norm", state)
    _fill(ours, tensors)
    return ours, theirs


def test_marian_translates_the_same(marian):
    ours, theirs = marian
    source, mask = _padded(31)
    target, _ = _padded(31, length=6, batch=3)
    target[:, 0] = 0
    told = target[:, :-1]
    expected = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=told).logits
    actual = ours({"source": source, "target": target}).logits
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


@pytest.mark.parametrize("gated", [False, True])
def test_t5_speaks_the_same(gated):
    config = hf.T5Config(
        vocab_size=31, d_model=8, d_kv=3, d_ff=12, num_layers=2, num_heads=2,
        relative_attention_num_buckets=8, relative_attention_max_distance=20,
        feed_forward_proj="gated-gelu" if gated else "relu", tie_word_embeddings=not gated,
    )  # fmt: skip
    theirs = _random(hf.T5ForConditionalGeneration(config))
    part = {
        "type": "transformer",
        "layers": 2,
        "attention": {"scorer": "dot", "align": "soft", "heads": 2, "head_dim": 3, "bias": False},
        "feed_forward": {
            "hidden": 12,
            "activation": "gelu-tanh" if gated else "relu",
            "gated": gated,
            "bias": False,
        },
        "norm": {"kind": "rms", "place": "pre", "eps": 1e-6},
        "position": {"type": "t5", "buckets": 8, "farthest": 20},
    }
    scale = 1.0 if gated else 8**-0.5
    ours = _zoo({
        "type": "seq2seq",
        "source": {"type": "token", "vocab": 31, "dim": 8},
        "shared": True,
        "bos": 0,
        "encoder": part,
        "decoder": {**part, "output": {"tied": not gated, "scale": scale}},
    })  # fmt: skip
    state = theirs.state_dict()
    tensors = {"source.table.weight": state["shared.weight"]}
    if gated:
        tensors["decoder.output.map.weight"] = state["lm_head.weight"]
    for side in ("encoder", "decoder"):
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        tensors[f"{side}.position.table.weight"] = state[bias]
        tensors |= _linear(f"{side}.final_layer_norm", f"{side}.final_norm", state)
        for i in range(2):
            there, here = f"{side}.block.{i}.layer", f"{side}.blocks.{i}"
            looks = [("SelfAttention", "attention"), ("EncDecAttention", "cross")]
            looks = looks[: 2 if side == "decoder" else 1]
            for at, (a, b) in enumerate(looks):
                tensors |= _linear(f"{there}.{at}.layer_norm", f"{here}.{b}_norm", state)
                for name in ("query", "key", "value", "out"):
                    short = "o" if name == "out" else name[0]
                    tensors |= _linear(f"{there}.{at}.{a}.{short}", f"{here}.{b}.{name}", state)
            last, maps = f"{there}.{len(looks)}", {"wi": "up", "wo": "down"}
            if gated:
                maps = {"wi_0": "gate", "wi_1": "up", "wo": "down"}
            tensors |= _linear(f"{last}.layer_norm", f"{here}.feed_forward_norm", state)
            for a, b in maps.items():
                tensors |= _linear(f"{last}.DenseReluDense.{a}", f"{here}.feed_forward.{b}", state)
    _fill(ours, tensors)
    source, mask = _padded(31, length=13)
    target, _ = _padded(31, length=12)
    expected = theirs(
        input_ids=source, attention_mask=mask, decoder_input_ids=target[:, :-1]
    ).logits
    actual = ours({"source": source, "target": target}).logits
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=0)


def test_llama_predicts_the_same_next_tokens():
    config = hf.LlamaConfig(
        vocab_size=31, hidden_size=16, intermediate_size=12, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-6,
    )  # fmt: skip
    theirs = _random(hf.LlamaForCausalLM(config))
    ours = _zoo({
        "type": "language-model",
        "embedding": {"type": "token", "vocab": 31, "dim": 16},
        "decoder": {
            "type": "transformer",
            "layers": 2,
            "attention": {
                "scorer": "scaled-dot", "align": "soft", "heads": 4, "kv_heads": 2, "bias": False
            },
            "feed_forward": {"hidden": 12, "activation": "silu", "gated": True, "bias": False},
            "norm": {"kind": "rms", "place": "pre", "eps": 1e-6},
            "position": "rotary",
        },
    })  # fmt: skip
    state = theirs.state_dict()
    tensors = {
        "embedding.table.weight": state["model.embed_tokens.weight"],
        "decoder.output.map.weight": state["lm_head.weight"],
        **_linear("model.norm", "decoder.final_norm", state),
    }
    for i in range(2):
        there, here = f"model.layers.{i}", f"decoder.blocks.{i}"
        for name in ("query", "key", "value", "out"):
            short = f"{name[0]}_proj"
            tensors |= _linear(f"{there}.self_attn.{short}", f"{here}.attention.{name}", state)
        for name in ("gate", "up", "down"):
            tensors |= _linear(f"{there}.mlp.{name}_proj", f"{here}.feed_forward.{name}", state)
        tensors |= _linear(f"{there}.input_layernorm", f"{here}.attention_norm", state)
        norm = f"{there}.post_attention_layernorm"
        tensors |= _linear(norm, f"{here}.feed_forward_norm", state)
    _fill(ours, tensors)
    tokens, mask = _padded(31)
    expected = theirs(input_ids=tokens).logits[:, :-1]
    seen = mask[:, :-1]
    actual = ours({"target": tokens}).logits
    torch.testing.assert_close(actual[seen], expected[seen], atol=ATOL, rtol=0)


def test_vit_names_the_same_images():
    config = hf.ViTConfig(
        hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
        image_size=8, patch_size=4, num_labels=3,
    )  # fmt: skip
    theirs = _random(hf.ViTForImageClassification(config))
    ours = _zoo({
        "type": "classifier",
        "source": {"type": "patches", "size": 4, "dim": 8},
        "classes": 3,
        "encoder": {
            "type": "transformer",
            "layers": 2,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
            "feed_forward": {"hidden": 12, "activation": "gelu"},
            "norm": {"place": "pre", "eps": 1e-12},
            "position": {"type": "learned", "length": 5},
        },
    })  # fmt: skip
    state = theirs.state_dict()
    tensors = {
        "source.whole": state["vit.embeddings.cls_token"][0, 0],
        "encoder.position.table.weight": state["vit.embeddings.position_embeddings"][0],
        **_linear("vit.embeddings.patch_embeddings.projection", "source.map", state),
        **_linear("vit.layernorm", "encoder.final_norm", state),
        **_linear("classifier", "out", state),
    }
    for i in range(2):
        there, here = f"vit.layers.{i}", f"encoder.blocks.{i}"
        for name in ("query", "key", "value", "out"):
            short = f"{name[0]}_proj"
            tensors |= _linear(f"{there}.attention.{short}", f"{here}.attention.{name}", state)
        tensors |= _linear(f"{there}.mlp.fc1", f"{here}.feed_forward.up", state)
        tensors |= _linear(f"{there}.mlp.fc2", f"{here}.feed_forward.down", state)
        tensors |= _linear(f"{there}.layernorm_before", f"{here}.attention_norm", state)
        tensors |= _linear(f"{there}.layernorm_after", f"{here}.feed_forward_norm", state)
    _fill(ours, tensors)
    images = torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    expected = theirs(pixel_values=images).logits
    actual = ours({"source": images, "target": torch.zeros(3, dtype=torch.long)}).logits
    torch.testing.assert_close(actual[:, 0], expected, atol=ATOL, rtol=0)
