import torch

import zoo


def test_words_have_the_outputs_of_their_first_tokens():
    params = {"source": {"type": "token", "vocab": 9, "dim": 4}, "labels": 3, "type": "tagger"}
    spec = {"zoo": 1, "name": "t", "model": {**params, "encoder": {"type": "gru", "hidden": 4}}}
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
