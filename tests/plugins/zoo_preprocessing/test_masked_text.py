import json

import numpy as np
import pytest

from zoo import ZooError
from zoo.plugin import TensorSchema
from zoo_preprocessing.masked_text import MaskedText
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

SCHEMA = TensorSchema(("B", "S"), "integer", below=1009)
MASK = 8


def large_tokenizer():
    """The tokenizer of the example with 1,000 more words."""
    data = json.loads(EXAMPLE_TOKENIZER)
    data["model"]["vocab"] |= {f"w{i}": 9 + i for i in range(1000)}
    return json.dumps(data)


def masked(**params):
    return MaskedText(schema=SCHEMA, stored=large_tokenizer(), **params)


def test_known_value():
    class Fixed:
        """Random numbers that select the positions 1 to 3: masked, random, unchanged."""

        def __init__(self):
            self.values = [[0.9, 0.1, 0.1, 0.1], [0.5, 0.79, 0.85, 0.95]]

        def random(self, count):
            return np.array(self.values.pop(0))

        def integers(self, count):
            return 0

        def choice(self, options, count):
            return np.full(count, 77)

    arrays = masked().transform("source", np.array([2, 3, 4, 5]), Fixed())
    assert arrays["source"].tolist() == [2, MASK, 77, 5]
    assert arrays["target"].tolist() == [2, 3, 4, 5]
    assert arrays["loss_mask"].tolist() == [False, True, True, True]


def test_80_percent_are_masked_and_10_percent_random_as_in_bert():
    rng = np.random.default_rng(0)
    target = np.arange(200_000) % 1000 + 9
    arrays = masked(rate=0.15).transform("source", target, rng)
    source, selected = arrays["source"], arrays["loss_mask"]
    assert selected.mean() == pytest.approx(0.15, abs=0.005)
    np.testing.assert_array_equal(source[~selected], target[~selected])
    kept = (source == target)[selected].mean()
    is_mask = (source == MASK)[selected].mean()
    assert is_mask == pytest.approx(0.8, abs=0.01)
    assert kept == pytest.approx(0.1 + 0.1 / 1006, abs=0.01)
    random_tokens = source[selected & (source != MASK) & (source != target)]
    assert len(np.unique(random_tokens)) > 800
    assert random_tokens.min() >= 1  # never the padding


def test_special_tokens_are_not_selected_and_one_position_is():
    rng = np.random.default_rng(0)
    for _ in range(50):
        arrays = masked(rate=0.01).transform("source", np.array([0, 2, 3, 0]), rng)
        assert arrays["loss_mask"].sum() == 1
        assert not arrays["loss_mask"][[0, 3]].any()


def test_the_selection_is_that_of_transformers_on_average():
    transformers = pytest.importorskip("transformers")
    import tokenizers
    import torch

    library = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(large_tokenizer()),
        mask_token="[MASK]",
        pad_token="<pad>",
    )
    collator = transformers.DataCollatorForLanguageModeling(library, mlm_probability=0.15)
    torch.manual_seed(0)
    target = np.arange(100_000) % 1000 + 9
    theirs, labels = collator.torch_mask_tokens(torch.tensor(target)[None])
    ours = masked().transform("source", target, np.random.default_rng(0))
    assert ours["loss_mask"].mean() == pytest.approx(
        float((labels != -100).float().mean()), abs=0.01
    )
    assert (ours["source"] == MASK).mean() == pytest.approx(
        float((theirs == MASK).float().mean()), abs=0.01
    )


def test_a_missing_mask_token_and_another_key_raise():
    with pytest.raises(ZooError, match=r"no token '<mask>'.*--special pad,unk,mask"):
        masked(mask_token="<mask>").transform("source", np.array([2]), np.random.default_rng(0))
    with pytest.raises(ZooError, match="from the key 'source', but it is at 'target'"):
        masked().outputs("target")
