"""Speech2Text of the zoo and of transformers on audio of unequal length.

The outputs of transformers for padded audio depend on the length of the batch, because its
convolutions see the padding; each recording is therefore compared with the recording alone.
"""

import torch
import transformers as hf

import zoo

LENGTHS = (2000, 1360, 1711)
"""Numbers of samples."""


def recordings(count):
    """Return noise of different lengths that grows and fades; one ends in silence.

    Frames of equal energy have a small deviation, by which features are divided, so that the
    rounding of float32 would be large beside it.
    """
    generator = torch.Generator().manual_seed(2)
    audio = [0.1 * torch.randn(LENGTHS[i % 3], generator=generator) for i in range(count)]
    audio = [each * torch.exp(1.5 * torch.sin(torch.arange(len(each)) / 150)) for each in audio]
    audio[0][-600:] = 0.0
    return audio


def features(theirs, waveform, **options):
    """Return the features [1, S, mels] of the feature extractor of transformers."""
    mels = theirs.config.input_feat_per_channel
    extractor = hf.Speech2TextFeatureExtractor(feature_size=mels, num_mel_bins=mels, **options)
    return extractor(waveform.numpy(), sampling_rate=16000, return_tensors="pt").input_features


@torch.no_grad()
def filter_bank_logits(ours, theirs, target, valid):
    """Return the logits of both for the same recordings and targets, without padding."""
    audio = recordings(len(target))
    target[valid & (target == ours.pad)] = 29
    target[:, 0] = ours.bos
    expected = [
        theirs(input_features=features(theirs, waveform), decoder_input_ids=row[None, :-1]).logits
        for waveform, row in zip(audio, target, strict=True)
    ]
    source = torch.nn.utils.rnn.pad_sequence(audio, batch_first=True, padding_value=float("nan"))
    logits = ours({"source": source, "target": target}).logits
    return logits[valid[:, :-1]], torch.cat(expected)[valid[:, :-1]]


@torch.no_grad()
def filter_bank_tokens(ours, theirs, count, max_length):
    """Return the tokens that both generate greedily, without the end token."""
    shortest = min(LENGTHS)
    audio = [each[: shortest - 300 * (i % 2)] for i, each in enumerate(recordings(count))]
    answers = zoo.generate(
        ours, [(waveform.numpy(), 16000) for waveform in audio], max_length=max_length
    )
    eos = theirs.config.eos_token_id
    expected = [[]] * count
    for first in (0, 1):  # those of one length together
        together = torch.cat([features(theirs, waveform) for waveform in audio[first::2]])
        expected[first::2] = theirs.generate(
            together,
            max_new_tokens=max_length,
            do_sample=False,
            suppress_tokens=[theirs.config.pad_token_id],
        )[:, 1:].tolist()
    expected = [row[: row.index(eos)] if eos in row else row for row in expected]
    return [ranked[0].tokens for ranked in answers], expected
