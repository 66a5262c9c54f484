"""Decoders whose logits are a linear map of state and context, against plain torch code."""

import pytest
import torch
from torch import nn

from zoo import SpecError, ZooError
from zoo.plugin import Attention, Blueprint, Memory
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_recurrent.attentive_rnn import AttentiveRNN
from zoo_recurrent.luong_rnn import LuongRNN
from zoo_tokens.token import Token

B, S, T, V, E, H = 3, 6, 4, 7, 5, 4


class KerasDecoder(nn.Module):
    """GRU with keras.layers.AdditiveAttention and a Dense layer on [state; context]."""

    def __init__(self, context_first: bool) -> None:
        super().__init__()
        self.context_first = context_first
        self.table = nn.Embedding(V, E)
        self.scale = nn.Parameter(torch.randn(H))
        self.gru = nn.GRUCell(E + H if context_first else E, H)
        self.dense = nn.Linear(2 * H, V)

    def attend(self, query, states, mask):
        # keras: reduce_sum(scale * tanh(query + key)), softmax over the valid keys.
        scores = (self.scale * torch.tanh(query[:, None] + states)).sum(dim=-1)
        weights = scores.masked_fill(~mask, -1e9).softmax(dim=-1)
        return torch.einsum("bs,bsd->bd", weights, states)

    def forward(self, tokens, states, mask):
        s, outputs = torch.zeros(len(tokens), H, dtype=states.dtype), []
        for t in range(tokens.shape[1]):
            y = self.table(tokens[:, t])
            if self.context_first:
                context = self.attend(s, states, mask)
                s = self.gru(torch.cat([y, context], dim=-1), s)
            else:
                s = self.gru(y, s)
                context = self.attend(s, states, mask)
            outputs.append(self.dense(torch.cat([s, context], dim=-1)))
        return torch.stack(outputs, dim=1)


def build(cls, **params):
    scorer = Blueprint.of(Additive, project=False)
    attention = Blueprint.of(Attention, scorer=scorer, align=Blueprint.of(Soft))
    blueprint = Blueprint.of(cls, attention=attention, hidden=H, cell="gru", init="zeros", **params)
    token = Token(vocab=V, dim=E)
    return blueprint.build(embedding=token, memory_dim=H, summary_dim=H, carry={}).double()


@pytest.mark.parametrize("cls", [AttentiveRNN, LuongRNN])
def test_logits_match_an_independent_decoder(cls):
    torch.manual_seed(0)
    params = {} if cls is AttentiveRNN else {"input_feeding": False}
    decoder = build(cls, output="linear", **params)
    other = KerasDecoder(context_first=cls is AttentiveRNN).double()
    # The input of LuongRNN's last layer is [c; s].
    weight = other.dense.weight
    if cls is LuongRNN:
        weight = torch.cat([weight[:, H:], weight[:, :H]], dim=1)
    decoder.load_state_dict(
        {
            "embedding.table.weight": other.table.weight,
            "attention.scorers.0.v": other.scale,
            **{f"cells.cells.0.{name}": p for name, p in other.gru.named_parameters()},
            "out.weight": weight,
            "out.bias": other.dense.bias,
        }
    )
    states = torch.randn(B, S, H, dtype=torch.float64)
    mask = torch.arange(S) < torch.tensor([[6], [2], [4]])
    tokens = torch.randint(1, V, (B, T))
    expected = other(tokens, states, mask)
    logits = decoder(tokens, Memory(states, mask, states[:, 0]))
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)


def test_input_feeding_concatenates_context_and_state():
    decoder = build(LuongRNN, output="linear")
    assert decoder.cells.cells[0].input_dim == E + 2 * H
    memory = Memory(
        torch.randn(2, 3, H).double(), torch.ones(2, 3).bool(), torch.zeros(2, H).double()
    )
    state = decoder.start(memory, steps=2)
    first, state = decoder.step(torch.tensor([[1], [2]]), state)
    torch.testing.assert_close(decoder.out(state.per_hypothesis["fed"]), first[:, 0])


def test_a_width_of_the_maxout_layer_is_rejected():
    with pytest.raises(ZooError, match=r"readout \(3\).*maxout"):
        build(AttentiveRNN, output="linear", readout=3)


def test_unequal_widths_of_queries_and_keys_are_rejected():
    with pytest.raises(SpecError, match=r"project: false.*query_dim.*key_dim"):
        Blueprint.of(Additive, project=False).build(query_dim=3, key_dim=4)
    with pytest.raises(ZooError, match=r"hidden \(8\).*\(3\)"):
        Additive(query_dim=3, key_dim=3, hidden=8, project=False)
