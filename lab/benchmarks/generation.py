"""Generation time: 1,000 tokens against 500, and late steps against early steps.

Each decoder generates one sequence greedily on one CPU thread. Recurrent decoders take the same
time for every step; with its cache the Transformer takes less than 2.5 times as long for 1,000
tokens as for 500 with one sequence; larger batches are bound by memory bandwidth of the cache.
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
    """Return the seconds of each step."""
    state = model_decoder.start(Memory.empty(BATCH), steps=count)
    token = torch.ones(BATCH, 1, dtype=torch.long)
    seconds = []
    for _ in range(count):
        started = time.perf_counter()
        logits, state = model_decoder.step(token, state)
        token = logits[:, -1:].argmax(dim=-1)
        seconds.append(time.perf_counter() - started)
    return seconds


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'decoder':<14}{'500':>9}{'1,000':>9}{'ratio':>7}{'late/early step':>17}")
    for name, part in DECODERS.items():
        model_decoder = decoder(part)
        steps(model_decoder, 50)
        # Alternate the runs and take the minimum, to reduce noise from other processes.
        pairs = [(steps(model_decoder, 500), steps(model_decoder, 1000)) for _ in range(5)]
        half, full = (min(sum(run) for run in runs) for runs in zip(*pairs, strict=True))
        each = [min(run[i] for _, run in pairs) for i in range(1000)]
        late = sum(each[900:]) / sum(each[:100])
        print(f"{name:<14}{half:>8.2f}s{full:>8.2f}s{full / half:>7.2f}{late:>17.2f}")


if __name__ == "__main__":
    main()
