"""Trained models transcribe at least 90 % of unseen tone sequences without an error."""

import pytest
import torch
from tones_kit import RATE, make_tones

import zoo
from zoo_ctc.ctc_greedy import CtcGreedy

LOG_MEL = f"{{rate: {RATE}, window: 64, hop: 32, mels: 12}}"
RECOGNISERS = {
    "deepspeech-ctc-tiny": [
        f"model.source={{inner: {LOG_MEL}, dim: 24, channels: 6}}",
        "model.encoder.hidden=24",
        "model.vocab=5",
    ],
    "transformer-ctc-tiny": [
        f"model.source={{inner: {LOG_MEL}, dim: 32, channels: 8, layers: 1}}",
        "model.encoder={feed_forward: {hidden: 64}}",
        "model.vocab=5",
    ],
}


def train_model(name, changes, batches, seed, steps, lr):
    model = zoo.compose(name, overrides=changes, seed=seed).train()
    objective = zoo.load_spec(name, overrides=changes).sections.objective.build()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    for step in range(steps):
        loss = objective(model(batches[step % len(batches)]))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


def exact_match_rate(decoded, labels):
    """Return the share of items whose best hypothesis equals the labels, without eos and pad."""
    label_ids = set(labels.unique().tolist()) - {0}
    return sum(
        [k for k in row if k in label_ids] == [k for k in expected if k]
        for row, expected in zip(decoded.best(), labels.tolist(), strict=True)
    ) / len(labels)


def build_sampler(name):
    return zoo.load_spec(name).sections.sampler.build()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", RECOGNISERS)
def test_a_recogniser_learns_tones(name, seed):
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for _ in range(30):
        source, target = make_tones(32, generator)
        batches.append({"source": source, "target": target})
    model = train_model(name, RECOGNISERS[name], batches, seed, steps=150, lr=0.01)
    source, labels = make_tones(200, generator)
    decoded = model.generate({"source": source}, build_sampler(name), max_length=8)
    assert exact_match_rate(decoded, labels) >= 0.9


JOINT = [
    f"model.source={{inner: {LOG_MEL}, dim: 24, channels: 6}}",
    "model.encoder.hidden=24",
    "model.target={vocab: 7, dim: 16}",
    "model.decoder={hidden: 32, readout: 16, attention: {scorer: {hidden: 24}}}",
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_heads_of_a_joint_model_learn_tones(seed):
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for _ in range(30):
        source, labels = make_tones(32, generator, first=3)
        batches.append({"source": source, "target": add_bos_eos(labels)})
    model = train_model("ctc-attention-tiny", JOINT, batches, seed, steps=400, lr=0.01)
    source, labels = make_tones(200, generator, first=3)
    by_decoder = model.generate(
        {"source": source}, build_sampler("ctc-attention-tiny"), max_length=8
    )
    by_frames = model.generate({"source": source}, CtcGreedy(), max_length=8)
    assert exact_match_rate(by_decoder, labels) >= 0.9
    assert exact_match_rate(by_frames, labels) >= 0.9


def add_bos_eos(labels):
    """Add bos (1) and eos (2) to padded labels [B, U]."""
    B, U = labels.shape
    target = torch.zeros(B, U + 2, dtype=torch.long)
    target[:, 0] = 1
    target[:, 1:-1] = labels
    return target.scatter(1, (labels > 0).sum(dim=1, keepdim=True) + 1, 2)
