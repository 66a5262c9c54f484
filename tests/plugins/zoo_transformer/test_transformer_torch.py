"""Weights of torch.nn.Transformer, which is post-norm with a final norm, imported with a map."""

import pytest
import torch
from map_kit import write_map
from safetensors.torch import save_file
from torch import Tensor, nn

import zoo

_STACK = {
    "type": "transformer",
    "layers": 2,
    "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
    "feed_forward": {"hidden": 12},
}
_MAP = """
rename:
  source.table.weight: source.weight
  decoder.embedding.table.weight: target.weight
  decoder.output.map.weight: output.weight
  "{s:encoder|decoder}.blocks.{n}.attention.out.{w:weight|bias}": "transformer.{s}.layers.{n}.self_attn.out_proj.{w}"
  "decoder.blocks.{n}.cross.out.{w:weight|bias}": "transformer.decoder.layers.{n}.multihead_attn.out_proj.{w}"
  "{s:encoder|decoder}.blocks.{n}.feed_forward.{p:up|down}.{w:weight|bias}": "transformer.{s}.layers.{n}.{p:linear1|linear2}.{w}"
  "{s:encoder|decoder}.blocks.{n}.attention_norm.{w:weight|bias}": "transformer.{s}.layers.{n}.norm1.{w}"
  "encoder.blocks.{n}.feed_forward_norm.{w:weight|bias}": "transformer.encoder.layers.{n}.norm2.{w}"
  "decoder.blocks.{n}.{p:cross_norm|feed_forward_norm}.{w:weight|bias}": "transformer.decoder.layers.{n}.{p:norm2|norm3}.{w}"
  "{s:encoder|decoder}.final_norm.{w:weight|bias}": "transformer.{s}.norm.{w}"
convert:
  - theirs: "transformer.{s:encoder|decoder}.layers.{n}.self_attn.in_proj_{w:weight|bias}"
    do: [{split: {dim: 0}}]
    ours:
      - "{s}.blocks.{n}.attention.query.{w}"
      - "{s}.blocks.{n}.attention.key.{w}"
      - "{s}.blocks.{n}.attention.value.{w}"
  - theirs: "transformer.decoder.layers.{n}.multihead_attn.in_proj_{w:weight|bias}"
    do: [{split: {dim: 0}}]
    ours:
      - "decoder.blocks.{n}.cross.query.{w}"
      - "decoder.blocks.{n}.cross.key.{w}"
      - "decoder.blocks.{n}.cross.value.{w}"
"""  # noqa: E501


class TorchModel(nn.Module):
    """A translation model with nn.Transformer and its default norms and activation."""

    def __init__(self) -> None:
        super().__init__()
        self.source = nn.Embedding(7, 8, padding_idx=0)
        self.target = nn.Embedding(7, 8, padding_idx=0)
        self.transformer = nn.Transformer(
            d_model=8,
            nhead=2,
            num_encoder_layers=2,
            num_decoder_layers=2,
            dim_feedforward=12,
            batch_first=True,
        )
        self.output = nn.Linear(8, 7, bias=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding, T = source == 0, target.shape[1]
        states = self.transformer(
            self.source(source),
            self.target(target),
            tgt_mask=torch.ones(T, T, dtype=torch.bool).triu(1),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.output(states)


@pytest.fixture
def torch_model(perturb) -> TorchModel:
    torch.manual_seed(0)
    return perturb(TorchModel()).eval()


def import_model(torch_model: TorchModel, folder, **norm) -> zoo.Model:
    save_file(torch_model.state_dict(), folder / "theirs.safetensors")
    stack = {**_STACK, "norm": norm}
    model = {
        "type": "seq2seq",
        "source": {"type": "token", "vocab": 7, "dim": 8},
        "encoder": stack,
        "decoder": stack,
    }
    return zoo.load(
        zoo.import_model(
            folder / "theirs.safetensors",
            folder / "ours.safetensors",
            spec={"zoo": 1, "name": "torch-transformer", "model": model},
            map=write_map(folder, _MAP),
        )
    )


def test_post_norm_with_a_final_norm_matches_torch_transformer(torch_model, tmp_path):
    model = import_model(torch_model, tmp_path, place="post", final=True)
    source = torch.tensor([[1, 4, 6, 2], [5, 2, 0, 0]])
    target = torch.tensor([[1, 3, 5, 4, 2], [1, 6, 6, 3, 2]])

    logits = model({"source": source, "target": target}).logits

    expected = torch_model(source, target[:, :-1])
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


def test_post_norm_without_a_final_norm_does_not_fit_the_weights(torch_model, tmp_path):
    with pytest.raises(zoo.SpecError, match=r"encoder\.final_norm"):
        import_model(torch_model, tmp_path, place="post")


def test_pre_norm_without_a_final_norm_does_not_fit_the_weights(torch_model, tmp_path):
    with pytest.raises(zoo.SpecError, match=r"encoder\.final_norm"):
        import_model(torch_model, tmp_path, place="pre", final=False)
