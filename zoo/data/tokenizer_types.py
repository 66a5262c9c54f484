"""Trainers of tokenizers, by type."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zoo.data.special_tokens import NAMES
from zoo.errors import MissingExtra, ZooError

TokenizerType = Literal["bpe", "unigram", "wordpiece", "words", "characters"]
UNKNOWN = NAMES["unk"][0]
_BYTES = 256


@dataclass(frozen=True)
class TrainingRequest:
    """What a trainer gets: the texts, and the options of `zoo.train_tokenizer`."""

    texts: Callable[[], Iterable[str]]
    vocab: int
    special: Sequence[str]
    min_count: int
    lowercase: bool
    progress: bool

    def train(self, backend: Any, trainer: Any, **options: Any) -> Any:
        """Train a tokenizer of the library and return it."""
        from tokenizers import normalizers

        if self.lowercase:
            backend.normalizer = normalizers.Lowercase()
        made = trainer(
            vocab_size=self.vocab,
            special_tokens=list(self.special),
            show_progress=self.progress,
            **options,
        )
        backend.train_from_iterator(self.texts(), made)
        return backend


def _library() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingExtra("tokenization", library="tokenizers", extra="text") from None
    return tokenizers


def _train_bpe(request: TrainingRequest) -> str:
    """Byte-pair encoding of UTF-8 bytes, so that every text can be encoded."""
    lib = _library()
    smallest = _BYTES + len(request.special)
    if request.vocab < smallest:
        raise ZooError(
            f"vocab ({request.vocab}) must be at least {smallest} for the type bpe: {_BYTES} bytes "
            f"and {len(request.special)} special tokens; use the type unigram or characters"
        )
    backend = lib.Tokenizer(lib.models.BPE())
    backend.pre_tokenizer = lib.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = lib.decoders.ByteLevel()
    alphabet = lib.pre_tokenizers.ByteLevel.alphabet()
    options = {"min_frequency": request.min_count, "initial_alphabet": sorted(alphabet)}
    return str(request.train(backend, lib.trainers.BpeTrainer, **options).to_str())


def _train_unigram(request: TrainingRequest) -> str:
    lib = _library()
    backend = lib.Tokenizer(lib.models.Unigram())
    backend.pre_tokenizer = lib.pre_tokenizers.Metaspace()
    backend.decoder = lib.decoders.Metaspace()
    trainer = lib.trainers.UnigramTrainer
    trained = request.train(backend, trainer, unk_token=UNKNOWN)
    data = json.loads(trained.to_str())
    first = len(request.special)
    pieces = data["model"]["vocab"]
    others = [entry for entry in pieces[first:] if entry[0] not in request.special]
    data["model"]["vocab"] = pieces[:first] + _sort_pieces(others)
    for token in data["added_tokens"]:
        token["id"] = request.special.index(token["content"])
    return json.dumps(data, ensure_ascii=False)


def _sort_pieces(pieces: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the pieces in an order, and with scores, that are the same in every run.

    The library sums in the order of a hash table. In that order it also adds missing characters,
    each with a score 0.0001 above the last one, starting at the lowest score.
    """
    lowest = min((score for _, score in pieces), default=0.0)

    def stable_score(piece: str, score: float) -> float:
        steps = (score - lowest) / 1e-4
        is_added = len(piece) == 1 and steps < len(pieces) and abs(steps - round(steps)) < 1e-4
        return round(lowest if is_added else score, 6)

    stable = [(piece, stable_score(piece, score)) for piece, score in pieces]
    return sorted(stable, key=lambda entry: (-entry[1], entry[0]))


def _train_word_level(request: TrainingRequest, pre_tokenizer: Any, decoder: Any) -> str:
    lib = _library()
    backend = lib.Tokenizer(lib.models.WordLevel(unk_token=UNKNOWN))
    backend.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        backend.decoder = decoder
    trainer = lib.trainers.WordLevelTrainer
    trained = request.train(backend, trainer, min_frequency=request.min_count)
    data = json.loads(trained.to_str())
    # The library gives a special token that is also a word in the texts the ID of the word.
    words = sorted(data["model"]["vocab"].items(), key=lambda item: item[1])
    names = [*request.special, *(word for word, _ in words if word not in request.special)]
    data["model"]["vocab"] = {name: number for number, name in enumerate(names)}
    for token in data["added_tokens"]:
        token["id"] = data["model"]["vocab"][token["content"]]
    return json.dumps(data, ensure_ascii=False)


def _train_words(request: TrainingRequest) -> str:
    return _train_word_level(request, _library().pre_tokenizers.WhitespaceSplit(), None)


def _train_characters(request: TrainingRequest) -> str:
    lib = _library()
    split = lib.pre_tokenizers.Split(lib.Regex("[\\s\\S]"), "isolated")
    return _train_word_level(request, split, lib.decoders.Fuse())


def _train_wordpiece(request: TrainingRequest) -> str:
    """Pieces of words, of which those inside a word start with ``##``.

    The words are split by byte-pair encoding and the most frequent pieces are kept, because the
    trainer of the library assigns IDs in the order of a hash table, which differs between runs.
    """
    lib = _library()
    backend = lib.Tokenizer(lib.models.BPE())
    backend.pre_tokenizer = lib.pre_tokenizers.BertPreTokenizer()
    options = {"min_frequency": request.min_count}
    pairs = request.train(backend, lib.trainers.BpeTrainer, **options)
    counts: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    for text in request.texts():
        encoded = pairs.encode(text)
        words = zip(encoded.tokens, encoded.word_ids, [None, *encoded.word_ids], strict=False)
        for piece, word, previous in words:
            inside = "##" if word == previous else ""
            counts[inside + piece] += 1
            characters[inside + piece[0]] += 1
            characters.update(f"##{character}" for character in piece[1:])
    max_pieces = request.vocab - len(request.special)
    ordered = [*_by_count(characters), *_by_count(counts)]
    pieces = [piece for piece in dict.fromkeys(ordered) if piece not in request.special]
    names = [*request.special, *pieces[: max(max_pieces, 0)]]
    vocab = {name: number for number, name in enumerate(names)}
    made = lib.Tokenizer(lib.models.WordPiece(vocab=vocab, unk_token=UNKNOWN))
    made.normalizer = pairs.normalizer
    made.pre_tokenizer = pairs.pre_tokenizer
    made.decoder = lib.decoders.WordPiece()
    made.add_special_tokens(list(request.special))
    return str(made.to_str())


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda piece: (-counts[piece], piece))


TRAINERS: Mapping[str, Callable[[TrainingRequest], str]] = {
    "bpe": _train_bpe,
    "unigram": _train_unigram,
    "wordpiece": _train_wordpiece,
    "words": _train_words,
    "characters": _train_characters,
}
