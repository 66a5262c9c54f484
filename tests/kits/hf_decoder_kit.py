"""Tiny random Hugging Face models, and decoders of ours around them."""

import functools

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, MarianConfig, MarianMTModel, logging

from zoo.plugin import Decoder, Memory, State

logging.set_verbosity_error()  # it recommends attention masks to models without padding

VOCAB = 24
EOS, PAD, BOS = 1, 2, 3
"""Hugging Face pads beams with EOS where the padding is token 0, so here it is not."""


class Gpt2Decoder(Decoder):
    """Reads all tokens again at every step: slow, plain, and the same logits."""

    name = "around-gpt2"

    def __init__(self, *, model: GPT2LMHeadModel) -> None:
        super().__init__()
        self.model = model

    def start(self, memory: Memory, *, steps: int) -> State:
        rows = memory.states.shape[0]
        return State({"said": torch.zeros(rows, 0, dtype=torch.long)})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        said = torch.cat([state.per_hypothesis["said"], tokens], dim=1)
        logits = self.model(input_ids=said).logits[:, -tokens.shape[1] :]
        return logits, state.updated({"said": said})


class MarianDecoder(Decoder):
    """The same, with the encoder's states as memory."""

    name = "around-marian"

    def __init__(self, *, model: MarianMTModel) -> None:
        super().__init__()
        self.model = model

    def start(self, memory: Memory, *, steps: int) -> State:
        rows = memory.states.shape[0]
        said = torch.zeros(rows, 0, dtype=torch.long)
        return State({"said": said}, {"states": memory.states, "mask": memory.mask.long()})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        said = torch.cat([state.per_hypothesis["said"], tokens], dim=1)
        logits = self.model(
            encoder_outputs=(state.per_source["states"],),
            attention_mask=state.per_source["mask"],
            decoder_input_ids=said,
        ).logits[:, -tokens.shape[1] :]
        return logits, state.updated({"said": said})


@functools.cache
def gpt2() -> GPT2LMHeadModel:
    """Weights so large that it says much, and ends now and then."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCAB,
        n_positions=64,
        n_embd=16,
        n_layer=2,
        n_head=2,
        initializer_range=0.4,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
    return GPT2LMHeadModel(config).double().eval()


@functools.cache
def marian() -> MarianMTModel:
    torch.manual_seed(2)
    config = MarianConfig(
        vocab_size=VOCAB,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=64,
        init_std=0.6,
        eos_token_id=EOS,
        pad_token_id=PAD,
        decoder_start_token_id=PAD,
        forced_eos_token_id=None,
        tie_word_embeddings=False,
    )
    model = MarianMTModel(config).double().eval()
    model.final_logits_bias[0, EOS] += 4.0  # or it would hardly ever end
    return model


def prompts(count: int = 50, length: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(BOS, VOCAB, (count, length), generator=generator)
