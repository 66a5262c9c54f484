import pytest
import torch
import torch.nn.functional as F

import zoo


def _spec(**params):
    source = {"type": "token", "vocab": 9, "dim": 4}
    model = {"type": "tagger", "source": source, "labels": 3, **params}
    return {"zoo": 1, "name": "t", "model": {**model, "encoder": {"type": "gru", "hidden": 4}}}


def test_words_have_the_outputs_of_their_first_tokens():
    spec = _spec()
    tokens, words = (
        zoo.compose(spec, overrides=[f"model.words={w}"], seed=0) for w in ("false", "true")
    )
    assert set(words.state_dict()) == set(tokens.state_dict())
    words.load_state_dict(tokens.state_dict())
    source = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 0]])
    every = tokens({"source": source, "target": torch.zeros(2, 4, dtype=torch.long)})
    starts, target = torch.tensor([[1, 3], [0, -1]]), torch.zeros(2, 2, dtype=torch.long)
    found = words({"source": source, "starts": starts, "target": target})
    torch.testing.assert_close(found.logits[0], every.logits[0, [1, 3]])
    torch.testing.assert_close(found.logits[1, 0], every.logits[1, 0])
    assert found.mask.tolist() == [[True, True], [True, False]]


def test_all_tokens_of_a_word_have_its_label_in_training():
    model = zoo.compose(_spec(words=True, align="all"))
    first = zoo.compose(_spec(words=True))
    first.load_state_dict(model.state_dict())
    batch = {
        "source": torch.tensor([[1, 2, 3, 4, 5], [5, 6, 7, 0, 0]]),
        "starts": torch.tensor([[1, 3], [0, -1]]),
        "ends": torch.tensor([[2, 3], [1, -1]]),
        "target": torch.tensor([[2, 1], [0, 0]]),
    }
    # The first and the last token of row 0 and the last of row 1 belong to no word.
    labels = torch.tensor([[-100, 2, 2, 1, -100], [0, 0, -100, -100, -100]])
    tokens = model.source(batch["source"])
    logits = model.out(model.encoder(tokens, model.source.mask(batch["source"])).states)
    expected = F.cross_entropy(logits.transpose(1, 2), labels)
    objective = zoo.objective({**_spec(), "objective": "cross-entropy"})
    outputs = model.train()(batch)
    assert outputs.mask.tolist() == (labels >= 0).tolist()
    torch.testing.assert_close(objective(outputs), expected)
    found = model.eval()(batch)
    words = first.eval()({key: batch[key] for key in ("source", "starts", "target")})
    assert torch.equal(found.logits, words.logits)
    assert torch.equal(found.mask, words.mask)
    masked = model.train()({**batch, "mask": torch.tensor([[False, True], [True, True]])})
    assert masked.mask[0].tolist() == [False, False, False, True, False]


def test_labels_of_several_classes_are_repeated():
    model = zoo.compose(_spec(words=True, align="all", multi_label=True)).train()
    batch = {
        "source": torch.tensor([[1, 2, 3]]),
        "starts": torch.tensor([[0, 1]]),
        "ends": torch.tensor([[0, 2]]),
        "target": torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]]),
    }
    assert model(batch).targets[0, :, 0].tolist() == [1, 0, 0]
    with pytest.raises(zoo.SpecError, match="'align: all' is for labels of words"):
        zoo.check(_spec(align="all"))
