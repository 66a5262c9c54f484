"""Batches of examples in memory, and tokenizers for them."""

from types import SimpleNamespace

import torch
from torch.nn.utils.rnn import pad_sequence

import zoo


class ListBatches:
    """Batches of `size` examples, each a mapping of tensors without the batch dimension."""

    def __init__(self, examples, references=(), *, size=3, pads=None):
        self.examples = examples
        self._references = references
        self.size = size
        self.pads = pads or {}

    def updates(self, epoch):
        return -(-len(self.examples) // self.size)

    def epoch(self, epoch, *, rank=0, world=1):
        for index in range(self.updates(epoch)):
            whole = range(len(self.examples))[index * self.size : (index + 1) * self.size]
            share = list(whole[rank::world])
            batch = self._collate(share) if share else None
            yield SimpleNamespace(index=index, batches=[batch], examples=share)

    def references(self, index):
        return self._references[index]

    def _collate(self, share):
        rows = [self.examples[index] for index in share]
        return {key: self._stack(key, [row[key] for row in rows]) for key in rows[0]}

    def _stack(self, key, values):
        if values[0].dim() == 0:
            return torch.stack(values)
        return pad_sequence(values, batch_first=True, padding_value=self.pads.get(key, 0))


def varied_translator(**sections):
    """Return a model over 16 words, untrained, with weights for which outputs differ."""
    spec = {"zoo": 1, "name": "translator", "extends": "bahdanau-reversal", **sections}
    model = zoo.compose(spec, seed=4)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(4)
    model.tokenizer = {"source": word_tokenizer(16), "target": word_tokenizer(16)}
    return model


def word_tokenizer(vocab):
    """Return the JSON of a tokenizer of the words `w3`, `w4`, ...; IDs 0 to 2 are special."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    special = ["<pad>", "<s>", "</s>"]
    words = [*special, *(f"w{i}" for i in range(3, vocab))]
    ids = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(special)
    return tokenizer.to_str()


def random_tokens(count, vocab, generator, *, shortest=2, longest=7):
    """Return token IDs from 3 on, of different lengths."""
    lengths = torch.randint(shortest, longest + 1, (count,), generator=generator)
    return [torch.randint(3, vocab, (int(n),), generator=generator) for n in lengths]
