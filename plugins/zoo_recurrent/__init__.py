"""Recurrent encoders, and recurrent decoders with and without attention."""

from collections.abc import Sequence

from zoo.plugin import Decoder, Encoder, hookimpl
from zoo_recurrent.attentive_rnn import AttentiveRNN
from zoo_recurrent.gru import GRU
from zoo_recurrent.hierarchical_decoder import HierarchicalDecoder
from zoo_recurrent.hierarchical_encoder import HierarchicalEncoder
from zoo_recurrent.lstm import LSTM
from zoo_recurrent.luong_rnn import LuongRNN
from zoo_recurrent.online_rnn import OnlineRNN
from zoo_recurrent.plain_rnn import PlainRNN
from zoo_recurrent.pointer_rnn import PointerRNN
from zoo_recurrent.rnn import RNN


@hookimpl
def zoo_components() -> Sequence[type[Encoder] | type[Decoder]]:
    return [
        RNN,
        LSTM,
        GRU,
        HierarchicalEncoder,
        PlainRNN,
        AttentiveRNN,
        LuongRNN,
        OnlineRNN,
        PointerRNN,
        HierarchicalDecoder,
    ]
