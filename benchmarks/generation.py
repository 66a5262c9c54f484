"""What it costs to generate: 1,000 tokens against 500, and a late step against an early one.

One run measures each decoder in turn on one sequence, greedily, on one CPU thread. Recurrent
decoders should pay the same for every step; the Transformer's cache keeps 1,000 tokens under 2.5
times the time of 500 for one sequence; larger batches are bound by reading the cache.
"""

import time

import torch

import zoo
from zoo.plugin import Memory

WIDTH, VOCAB, BATCH = 256, 1000, 1
TRANSFORMER = {
    "type": "transformer",
    "layers": 4,
    "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 4},
    "feed_forward": {"hidden": 4 * WIDTH},
    "norm": {"place": "pre"},
    "position": "rotary",
}
DECODERS = {
    "rnn": {"type": "plain-rnn", "cell": "rnn", "hidden": WIDTH, "init": "zeros"},
    "gru": {"type": "plain-rnn", "cell": "gru", "hidden": WIDTH, "init": "zeros"},
    "lstm": {"type": "plain-rnn", "cell": "lstm", "hidden": WIDTH, "init": "zeros"},
    "transformer": TRANSFORMER,
}


def decoder(part: dict[str, object]) -> zoo.plugin.Decoder:
    embedding = {"type": "token", "vocab": VOCAB, "dim": WIDTH}
    model = {"type": "language-model", "embedding": embedding, "decoder": part}
    built: zoo.plugin.Decoder = (
        zoo.compose({"zoo": 1, "name": "bench", "model": model}).eval().decoder
    )
    return built


@torch.no_grad()
def steps(model_decoder: zoo.plugin.Decoder, count: int) -> list[float]:
    """Seconds of each step."""
    state = model_decoder.start(Memory.empty(BATCH), steps=count)
    token = torch.ones(BATCH, 1, dtype=torch.long)
    spent = []
    for _ in range(count):
        started = time.perf_counter()
        logits, state = model_decoder.step(token, state)
        token = logits[:, -1:].argmax(dim=-1)
        spent.append(time.perf_counter() - started)
    return spent


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'decoder':<14}{'500':>9}{'1,000':>9}{'ratio':>7}{'late/early step':>17}")
    for name, part in DECODERS.items():
        model_decoder = decoder(part)
        steps(model_decoder, 50)
        # In turns, so that a busy moment of the machine falls on both alike; the least counts.
        pairs = [(steps(model_decoder, 500), steps(model_decoder, 1000)) for _ in range(5)]
        half, whole = (min(sum(run) for run in runs) for runs in zip(*pairs, strict=True))
        each = [min(run[i] for _, run in pairs) for i in range(1000)]
        late = sum(each[900:]) / sum(each[:100])
        print(f"{name:<14}{half:>8.2f}s{whole:>8.2f}s{whole / half:>7.2f}{late:>17.2f}")


if __name__ == "__main__":
    main()
