import torch
from torch import nn

from zoo.plugin import Attention, Blueprint
from zoo_alignment.soft import Soft
from zoo_transformer.attention_pooling import AttentionPooling
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.scaled_dot import ScaledDot
from zoo_transformer.transformer_encoder import TransformerEncoder


def build() -> AttentionPooling:
    torch.manual_seed(0)
    attention = Blueprint.of(
        Attention, scorer=Blueprint.of(ScaledDot), align=Blueprint.of(Soft), heads=2
    )
    feed_forward = Blueprint.of(FeedForward, hidden=12)
    encoder = Blueprint.of(
        TransformerEncoder, layers=1, attention=attention, feed_forward=feed_forward
    )
    return AttentionPooling(
        input_dim=8, encoder=encoder, attention=attention, feed_forward=feed_forward
    )


@torch.no_grad()
def test_the_summary_equals_attention_of_torch():
    pooling = build()
    x = torch.randn(2, 5, 8)
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])

    memory = pooling(x, mask)

    inner = pooling.encoder(x, mask)
    assert torch.equal(memory.states, inner.states)
    parts = pooling.attention
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    theirs.in_proj_weight.copy_(
        torch.cat([parts.query.weight, parts.key.weight, parts.value.weight])
    )
    theirs.in_proj_bias.copy_(torch.cat([parts.query.bias, parts.key.bias, parts.value.bias]))
    theirs.out_proj.load_state_dict(parts.out.state_dict())
    query = pooling.query.expand(2, 1, -1)
    y = theirs(query, inner.states, inner.states, key_padding_mask=~mask)[0][:, 0]
    expected = y + pooling.feed_forward(pooling.norm(y))
    torch.testing.assert_close(memory.summary, expected)


def test_names_of_the_weights():
    names = {name.partition(".")[0] for name, _ in build().named_parameters()}
    assert names == {"query", "encoder", "attention", "norm", "feed_forward"}
