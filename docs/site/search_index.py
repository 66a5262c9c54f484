"""The index of the search: a script that pages load when someone searches, also from files."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping

from html_body import Body
from navigation import GUIDES

_WORD = re.compile(r"[^\W_][\w.-]*[^\W_]|[^\W_]{2,}")
TITLE, HEADING, TEXT = 20, 5, 1
"""Weights of a word by where it stands."""
MAX_WEIGHT = 9
"""The largest weight of a word that stands in a text many times."""
GUIDE = 2
"""Factor of the weights of a guide, which a newcomer looks for, over those of a reference."""
_GUIDES = frozenset(name for names in GUIDES.values() for name in names)
SUMMARY = 160
STOP_WORDS = frozenset(
    [
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "has",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "that",
        "the",
        "to",
        "with",
    ]
)

SYNONYMS = {
    "bf16": ["bfloat16", "precision"],
    "visualise": ["attend"],
    "visualize": ["attend"],
    "fp16": ["precision"],
    "amp": ["precision"],
    "finetune": ["fine-tuning"],
    "finetuning": ["fine-tuning"],
    "huggingface": ["hugging", "hub"],
    "hf": ["hugging", "hub"],
    "heatmap": ["heat", "attend"],
    "getting started": ["quickstart"],
    "installation": ["install"],
    "multi gpu": ["processes"],
    "vscode": ["editor"],
    "vs code": ["editor"],
    "rope": ["rotary"],
    "asr": ["speech-recognition"],
    "tts": ["speech"],
    "ner": ["tagging"],
    "named entity recognition": ["tagging"],
    "sentiment": ["classification"],
    "inference": ["generate", "predict"],
    "gpt": ["gpt2"],
    "lr": ["rate"],
    "learning rate": ["schedule", "lr"],
    "ddp": ["processes"],
    "distributed": ["processes"],
    "checkpointing": ["checkpoints"],
    "nmt": ["translation"],
    "custom": ["own", "plugin"],
}
"""Words that users type, which the pages do not have, and words of the pages for the same."""


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; hyphenated names also in their parts."""
    found = []
    for word in _WORD.findall(text.lower()):
        parts = re.split(r"[.-]+", word)
        found += [word, *parts] if len(parts) > 1 else [word]
    return [word for word in found if len(word) > 1 and word not in STOP_WORDS]


def search_script(bodies: Mapping[str, Body], titles: Mapping[str, str]) -> str:
    """Return the script: pages with titles and summaries, and the pages of each word."""
    weights: dict[str, dict[int, int]] = defaultdict(dict)
    pages = []
    for number, (path, body) in enumerate(bodies.items()):
        name = path.removesuffix(".md")
        pages.append([f"{name}.html", titles[name], _shorten(body.summary)])
        counts: dict[str, int] = defaultdict(int)
        for word in words(body.words):
            counts[word] = min(counts[word] + TEXT, MAX_WEIGHT)
        for heading in body.headings:
            for word in words(heading.text):
                counts[word] += TITLE if heading.level == 1 else HEADING
        factor = GUIDE if name in _GUIDES else 1
        for word, weight in counts.items():
            weights[word][number] = factor * weight
    rows = {
        word: [part for pair in found.items() for part in pair] for word, found in weights.items()
    }
    data = {
        "pages": pages,
        "words": {word: rows[word] for word in sorted(rows)},
        "synonyms": SYNONYMS,
    }
    return f"window.zooSearch = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))};\n"


def _shorten(text: str) -> str:
    return text if len(text) <= SUMMARY else text[:SUMMARY].rsplit(" ", 1)[0] + " …"
