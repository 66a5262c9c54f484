"""Batches of texts, arrays and blocks: complete, the same for any division, resumable."""

import numpy as np
import pytest
import torch
from data_kit import (
    LANGUAGE_MODEL,
    SEQ2SEQ,
    array_batches,
    parallel_columns,
    text_batches,
)

import zoo
from zoo.errors import DataError, ZooError
from zoo.spec.training import Batching

COLUMNS = parallel_columns(60)
TEXTS = {"target": COLUMNS["target"]}


def _ids(text):
    return [int(word[1:]) for word in text.split()]


def _rows(update):
    """Return the token IDs of an update without padding, by example."""
    found, examples = {}, iter(update.examples)
    for batch in update.batches:
        for source, target in zip(batch["source"], batch["target"], strict=True) if batch else ():
            index = next(examples)
            found[index] = (source[source != 0].tolist(), target[target != 0].tolist())
    return found


@pytest.mark.parametrize("batching", [Batching(items=7), Batching(tokens=60)])
def test_an_epoch_has_each_example_once_with_its_tokens(batching):
    batches = text_batches(COLUMNS, batching)
    model = zoo.compose(SEQ2SEQ)
    found = {}
    for position, update in enumerate(batches.epoch(1)):
        assert update.index == position
        assert len(update.examples) == update.items
        assert update.tokens == sum(len(s) + len(t) for s, t in _rows(update).values())
        (batch,) = update.batches
        model.check_batch(batch)
        found |= _rows(update)
    assert position + 1 == batches.updates(1)
    assert sorted(found) == list(range(60))
    for index, (source, target) in found.items():
        assert source == _ids(COLUMNS["source"][index])
        assert target == [1, *_ids(COLUMNS["target"][index]), 2]


@pytest.mark.parametrize(("world", "accumulate"), [(1, 3), (2, 1), (3, 2), (9, 1)])
def test_ranks_and_micro_batches_divide_the_same_updates(world, accumulate):
    batches = text_batches(COLUMNS, Batching(items=7))
    whole = [_rows(update) for update in batches.epoch(2)]
    parts = [{} for _ in whole]
    for rank in range(world):
        updates = list(batches.epoch(2, rank=rank, world=world, accumulate=accumulate))
        assert len(updates) == len(whole)
        for part, update, expected in zip(parts, updates, whole, strict=True):
            assert len(update.batches) == accumulate
            assert update.items == len(expected)
            assert not part.keys() & _rows(update).keys()
            part |= _rows(update)
    assert parts == whole


def test_an_epoch_continues_at_any_position():
    batches = text_batches(COLUMNS, Batching(tokens=60))
    whole = [_rows(update) for update in batches.epoch(0)]
    for start in range(batches.updates(0) + 1):
        rest = text_batches(COLUMNS, Batching(tokens=60)).epoch(0, start=start)
        assert [_rows(update) for update in rest] == whole[start:]
    assert [_rows(update) for update in batches.epoch(1)] != whole


def test_evaluation_keeps_the_order_and_the_first_reference():
    columns = {**COLUMNS, "target": [[text, "w9"] for text in COLUMNS["target"]]}
    batches = text_batches(columns, Batching(tokens=30, drop_long=5), evaluation=True)
    updates = list(batches.epoch(0))
    assert [index for update in updates for index in update.examples] == list(range(60))
    assert _rows(updates[0])[0][1] == [1, *_ids(COLUMNS["target"][0]), 2]
    assert batches.references(0) == [COLUMNS["target"][0], "w9"]
    assert updates[0].origins()[0] == "list:1"


def test_the_loss_does_not_depend_on_the_division():
    model, objective = zoo.compose(SEQ2SEQ), zoo.objective(SEQ2SEQ)
    batches = text_batches(COLUMNS, Batching(items=12))

    def total(accumulate):
        update = next(iter(batches.epoch(0, accumulate=accumulate)))
        outputs = [model(batch) for batch in update.batches]
        return sum(objective(item) * item.mask.sum() for item in outputs)

    torch.testing.assert_close(total(1), total(4))


@pytest.mark.parametrize("evaluation", [False, True])
def test_blocks_are_consecutive_tokens_of_all_texts(evaluation):
    batching = Batching(items=3, block=16)
    batches = text_batches(TEXTS, batching, spec=LANGUAGE_MODEL, evaluation=evaluation)
    stream = [token for text in TEXTS["target"] for token in (1, *_ids(text), 2)]
    predicted = []
    for update in batches.epoch(0):
        (batch,) = update.batches
        mask = batch.get("mask", torch.ones_like(batch["target"], dtype=torch.bool))
        for row, valid in zip(batch["target"], mask, strict=True):
            tokens = row[valid].tolist()
            places = [
                start
                for start in range(len(stream))
                if stream[start : start + len(tokens)] == tokens
            ]
            assert len(places) == 1
            predicted += range(places[0] + 1, places[0] + len(tokens))
    assert len(set(predicted)) == len(predicted)
    missing = len(stream) - 1 - len(predicted)
    assert missing == 0 if evaluation else missing < 2 * 16
    assert evaluation == (predicted == sorted(predicted))


def test_an_empty_text_in_blocks_has_its_start_and_end():
    texts = {"target": ["w3 w4", "", "w5"]}
    batches = text_batches(texts, Batching(items=1, block=16), spec=LANGUAGE_MODEL, evaluation=True)
    ((batch,),) = (update.batches for update in batches.epoch(0))
    assert batch["target"].tolist() == [[1, 3, 4, 2, 1, 2, 1, 5, 2]]


@pytest.mark.parametrize("evaluation", [False, True])
@pytest.mark.parametrize(("bos", "eos"), [(1, 2), (2, 2), (None, 2), (2, [1, 2])])
def test_the_start_of_a_text_is_not_a_target_of_blocks(bos, eos, evaluation):
    spec = {**LANGUAGE_MODEL, "model": {**LANGUAGE_MODEL["model"], "bos": bos, "eos": eos}}
    batching = Batching(items=3, block=7, shuffle=False)
    model, end = zoo.compose(spec), eos if isinstance(eos, int) else eos[0]
    batches = text_batches(TEXTS, batching, model=model, evaluation=evaluation)
    targets = []
    for update in batches.epoch(0):
        outputs = model(update.batches[0])
        targets += outputs.targets[outputs.mask].tolist()
    expected = [token for text in TEXTS["target"] for token in (*_ids(text), end)]
    if bos is None:
        expected = expected[1:]  # nothing before the first token
    if evaluation:
        assert targets == expected
    else:
        assert str(targets)[1:-1] in str(expected)
        assert len(expected) - len(targets) < 2 * 7


@pytest.mark.parametrize("workers", [0, 1])
def test_the_only_batch_of_arrays_is_made_once(workers):
    options = {"noise": False, "workers": workers}
    with array_batches(1, Batching(items=1), **options) as batches:
        first, second = (next(batches.epoch(epoch)) for epoch in (0, 1))
        assert first.batches[0]["source"] is second.batches[0]["source"]
        assert first.examples == second.examples == [0]
    with array_batches(2, Batching(items=1), **options) as batches:
        assert len([update.index for update in batches.epoch(0)]) == 2


def test_a_model_without_padding_token_gets_a_mask():
    (update, *_) = text_batches(TEXTS, Batching(items=8, buckets=0), spec=LANGUAGE_MODEL).epoch(0)
    (batch,) = update.batches
    lengths = [len(_ids(TEXTS["target"][index])) + 2 for index in update.examples]
    assert batch["mask"].sum(dim=1).tolist() == lengths


def test_long_examples_are_dropped_or_reported():
    lengths = [max(len(_ids(t)) + 2, len(_ids(s))) for s, t in zip(*COLUMNS.values(), strict=True)]
    batches = text_batches(COLUMNS, Batching(tokens=60, drop_long=9))
    assert batches.skipped == {"more than 9 tokens": sum(length > 9 for length in lengths)}
    found = [index for update in batches.epoch(0) for index in update.examples]
    assert sorted(found) == [index for index, length in enumerate(lengths) if length <= 9]
    longest = lengths.index(max(lengths))
    with pytest.raises(DataError, match=rf"list:{longest + 1}: the example has 14 tokens, .* 10;"):
        text_batches(COLUMNS, Batching(tokens=10))


def test_bad_texts_are_reported_or_skipped():
    columns = {"source": ["w3", "x", "w4", "", "w99"], "target": ["w3"] * 5}
    with pytest.raises(DataError, match="list:2: 'x' is not a text of numbered words"):
        text_batches(columns)
    columns["target"][2] = DataError("bad")
    with pytest.raises(DataError, match="list:3: bad"):
        text_batches(columns)
    batches = text_batches(columns, bad_data="skip")
    assert [update.examples for update in batches.epoch(0)] == [[0]]
    assert batches.skipped == {
        "'x' is not a text of numbered words": 1,
        "bad": 1,
        "'source' is empty: it has no tokens": 1,
        "'source' contains 99, but expected IDs from 0 to 49": 1,
    }
    with pytest.raises(DataError, match=r"no examples to use: all are skipped \(2: 'source' is e"):
        text_batches({"source": ["", ""], "target": ["w3", "w3"]}, bad_data="skip")
    with pytest.raises(DataError, match="no examples to use: it is empty"):
        text_batches({"source": [], "target": []})


def test_missing_fields_and_unknown_lengths_raise_zoo_error():
    with pytest.raises(ZooError, match=r"needs 'target', but dataset 'list' .* gives 'source'"):
        text_batches({"source": ["w3"]})
    with pytest.raises(ZooError, match=r"batch\.tokens needs the number of tokens"):
        array_batches(4, Batching(tokens=9))
    with pytest.raises(ZooError, match=r"batch\.block needs one text"):
        text_batches(COLUMNS, Batching(items=2, block=4))


@pytest.mark.parametrize("workers", [0, 2])
def test_random_transforms_depend_on_seed_epoch_and_index_only(workers):
    def arrays(epoch, items, **options):
        with array_batches(12, Batching(items=items), workers=workers) as batches:
            return {
                index: row
                for update in batches.epoch(epoch, **options)
                for index, row in zip(
                    update.examples, update.batches[0]["source"].numpy(), strict=True
                )
            }

    first = arrays(0, 4)
    np.testing.assert_equal(arrays(0, 5), first)
    assert all((array != first[index]).all() for index, array in arrays(1, 4).items())
    share = arrays(0, 4, world=2, rank=1)
    assert len(share) == 6
    np.testing.assert_equal(share, {index: first[index] for index in share})


def test_bad_arrays_are_skipped_when_they_are_read():
    bad = {3: np.full((3, 3, 3), np.nan), 5: np.zeros(2)}
    with pytest.raises(DataError, match=r"list:(4|6): 'source' "):
        list(array_batches(12, Batching(items=4), bad=bad).epoch(0))
    batches = array_batches(12, Batching(items=4), bad=bad, bad_data="skip")
    for _ in range(2):
        found = [index for update in batches.epoch(0) for index in update.examples]
        assert sorted(found) == [0, 1, 2, 4, 6, 7, 8, 9, 10, 11]
    assert sum(batches.skipped.values()) == 2
