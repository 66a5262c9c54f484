"""Weights of ALBERT in transformers: narrow embeddings and one block for all layers."""

import pytest
import torch
import transformers as hf
from map_kit import write_map
from safetensors import safe_open
from safetensors.torch import save_file

import zoo

_SPEC = {
    "zoo": 1,
    "name": "albert-tiny",
    "model": {
        "type": "masked-lm",
        "source": {"type": "token", "vocab": 31, "dim": 6, "segments": 2},
        "encoder": {
            "type": "transformer",
            "layers": 3,
            "dim": 8,
            "share_layers": True,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
            "feed_forward": {"hidden": 12, "activation": "gelu"},
            "norm": {"eps": 1e-12, "embedding": True},
            "position": {"type": "learned", "length": 16},
        },
    },
}
_MAP = """
rename:
  "source.{p:table|segments}.weight": "albert.embeddings.{p:word|token_type}_embeddings.weight"
  encoder.position.table.weight: albert.embeddings.position_embeddings.weight
  "encoder.embedding_norm.{w:weight|bias}": "albert.embeddings.LayerNorm.{w}"
  "encoder.map.{w:weight|bias}": "albert.encoder.embedding_hidden_mapping_in.{w}"
  "encoder.blocks.0.attention.{p:query|key|value|out}.{w:weight|bias}": "LAYER.attention.{p:query|key|value|dense}.{w}"
  "encoder.blocks.0.attention_norm.{w:weight|bias}": "LAYER.attention.LayerNorm.{w}"
  "encoder.blocks.0.feed_forward.{p:up|down}.{w:weight|bias}": "LAYER.{p:ffn|ffn_output}.{w}"
  "encoder.blocks.0.feed_forward_norm.{w:weight|bias}": "LAYER.full_layer_layer_norm.{w}"
  "{p:transform|norm}.{w:weight|bias}": "predictions.{p:dense|LayerNorm}.{w}"
  bias: predictions.bias
""".replace("LAYER", "albert.encoder.albert_layer_groups.0.albert_layers.0")  # noqa: E501


@pytest.fixture(scope="module")
def albert() -> hf.AlbertForMaskedLM:
    torch.manual_seed(0)
    config = hf.AlbertConfig(
        vocab_size=31, embedding_size=6, hidden_size=8, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=12, hidden_act="gelu", max_position_embeddings=16, initializer_range=0.5,
        attn_implementation="eager",
    )  # fmt: skip
    return hf.AlbertForMaskedLM(config).eval()


@pytest.fixture(scope="module")
def path(albert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("albert")
    tied = ("predictions.decoder.weight", "predictions.decoder.bias")
    tensors = {k: v.clone() for k, v in albert.state_dict().items() if k not in tied}
    save_file(tensors, folder / "theirs.safetensors")
    return zoo.import_model(
        folder / "theirs.safetensors",
        folder / "ours.safetensors",
        spec=_SPEC,
        map=write_map(folder, _MAP),
    )


TOKENS = torch.tensor([[5, 9, 30, 4, 17], [8, 3, 12, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
MASK = TOKENS != 0


def run(model: zoo.Model) -> torch.Tensor:
    inputs = torch.stack([TOKENS, SEGMENTS], dim=-1)
    return model({"source": inputs, "target": TOKENS}).logits


@torch.no_grad()
def test_states_logits_and_attention_match_transformers(albert, path):
    model = zoo.load(path)
    theirs = albert(
        TOKENS,
        attention_mask=MASK.long(),
        token_type_ids=SEGMENTS,
        output_attentions=True,
        output_hidden_states=True,
    )

    with zoo.recording(model) as log:
        logits = run(model)

    states = model.encode(torch.stack([TOKENS, SEGMENTS], dim=-1)).states
    torch.testing.assert_close(states[MASK], theirs.hidden_states[-1][MASK], rtol=0, atol=1e-5)
    torch.testing.assert_close(logits[MASK], theirs.logits[MASK], rtol=0, atol=1e-5)
    (calls,) = log.values()  # one attention, called once per layer
    assert len(calls) == 3
    for ours, other in zip(calls, theirs.attentions, strict=True):
        valid = MASK[:, None, :, None].expand_as(other)
        torch.testing.assert_close(ours[valid], other[valid], rtol=0, atol=1e-5)


def test_the_shared_block_is_stored_once(path):
    with safe_open(path, "pt") as file:
        blocks = {name for name in file.keys() if "blocks" in name}  # noqa: SIM118

    assert {name.split(".")[2] for name in blocks} == {"0"}
    assert set(zoo.load(path).state_dict()) >= blocks
    assert zoo.verify(path).ok


def test_hooks_fire_once_per_layer_and_gradients_are_summed(path):
    model, calls = zoo.load(path).train(), []
    model.encoder.blocks[0].attention.register_forward_hook(lambda *_: calls.append(1))

    run(model).square().sum().backward()

    assert len(calls) == 3
    assert all(p.grad is not None for p in model.encoder.parameters())


def test_shared_layers_have_the_parameters_of_one_block():
    model = zoo.compose(_SPEC)
    separate = zoo.compose(_SPEC, overrides=["model.encoder.share_layers=false"])

    names = {name.replace("blocks.1.", "blocks.0.").replace("blocks.2.", "blocks.0.")
             for name in separate.state_dict()}  # fmt: skip
    assert set(model.state_dict()) == names
    assert len(separate.encoder.blocks) == 3
    assert model.encoder.output_dim == 8
    assert model.encoder.input_dim == 6
