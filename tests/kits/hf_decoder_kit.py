"""Tiny random models of transformers, and decoders that wrap them."""

import functools

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, MarianConfig, MarianMTModel, logging

from zoo.plugin import Decoder, Memory, State

logging.set_verbosity_error()  # it warns about missing attention masks

VOCAB = 24
EOS, PAD, BOS = 1, 2, 3
"""The padding is not token 0, because transformers pads beams with EOS if it is."""


class Gpt2Decoder(Decoder):
    """Recompute all tokens at every step."""

    name = "gpt2-wrapper"

    def __init__(self, *, model: GPT2LMHeadModel) -> None:
        super().__init__()
        self.model = model

    def start(self, memory: Memory, *, steps: int) -> State:
        rows = memory.states.shape[0]
        return State({"tokens": torch.zeros(rows, 0, dtype=torch.long)})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        all_tokens = torch.cat([state.per_hypothesis["tokens"], tokens], dim=1)
        logits = self.model(input_ids=all_tokens).logits[:, -tokens.shape[1] :]
        return logits, state.updated({"tokens": all_tokens})


class MarianDecoder(Decoder):
    """Recompute all tokens at every step, with the encoder's states as memory."""

    name = "marian-wrapper"

    def __init__(self, *, model: MarianMTModel) -> None:
        super().__init__()
        self.model = model

    def start(self, memory: Memory, *, steps: int) -> State:
        rows = memory.states.shape[0]
        tokens = torch.zeros(rows, 0, dtype=torch.long)
        return State({"tokens": tokens}, {"states": memory.states, "mask": memory.mask.long()})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        all_tokens = torch.cat([state.per_hypothesis["tokens"], tokens], dim=1)
        logits = self.model(
            encoder_outputs=(state.per_source["states"],),
            attention_mask=state.per_source["mask"],
            decoder_input_ids=all_tokens,
        ).logits[:, -tokens.shape[1] :]
        return logits, state.updated({"tokens": all_tokens})


@functools.cache
def gpt2() -> GPT2LMHeadModel:
    """Return a model with large weights, so that outputs vary and some end early."""
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
    model.final_logits_bias[0, EOS] += 4.0  # otherwise hardly any output ends
    return model


def prompts(count: int = 50, length: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(BOS, VOCAB, (count, length), generator=generator)
