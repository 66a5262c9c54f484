"""Synthetic speech: waveforms of two to five tones, each with one of four pitches."""

import math

import torch

RATE = 2000
PITCHES = (150.0, 300.0, 500.0, 800.0)


def make_tones(count, generator, *, first=1):
    """Return waveforms [B, n] of tones, silence and noise, and labels [B, 5], both padded."""

    def randint(low, high):
        return int(torch.randint(low, high, (1,), generator=generator))

    waves, labels = [], []
    for _ in range(count):
        pitch_ids = [randint(0, len(PITCHES)) for _ in range(randint(2, 6))]
        pieces = [torch.zeros(randint(60, 200))]
        for pitch in pitch_ids:
            time = torch.arange(randint(160, 320)) / RATE
            phase = 2 * math.pi * randint(0, 100) / 100
            pieces.append(torch.sin(2 * math.pi * PITCHES[pitch] * time + phase))
            pieces.append(torch.zeros(randint(100, 200)))
        wave = torch.cat(pieces)
        waves.append(wave + 0.05 * torch.randn(len(wave), generator=generator))
        labels.append(torch.tensor(pitch_ids) + first)
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(waves, batch_first=True), pad(labels, batch_first=True)
