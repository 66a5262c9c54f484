"""Vectors of raw texts."""

import pytest
import torch

import zoo
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

MODEL = {
    "type": "sentence-encoder",
    "source": {"type": "token", "vocab": 9, "dim": 4},
    "encoder": {"type": "gru", "hidden": 4},
}


def compose(**sections):
    model = zoo.compose({"zoo": 1, "name": "tiny", "model": MODEL, **sections})
    model.tokenizer = {"source": EXAMPLE_TOKENIZER}
    return model.train()


def test_vectors_of_texts_are_those_of_their_tokens():
    model = compose(preprocessing={"source": "text"})
    vectors = zoo.embed(model, ["the cat", "mat", "a cat sat"], batch_size=2)
    expected = model.embed({"source": torch.tensor([[2, 3, 0], [7, 0, 0], [6, 3, 4]])})
    torch.testing.assert_close(vectors, expected)
    assert not vectors.requires_grad
    assert model.training


def test_wrong_models_and_inputs_raise():
    with pytest.raises(zoo.ZooError, match="no preprocessor for 'source'"):
        zoo.embed(compose(), ["the cat"])
    model = compose(preprocessing={"source": "text"})
    with pytest.raises(zoo.ZooError, match="expected a list of inputs"):
        zoo.embed(model, 7)
    with pytest.raises(zoo.ZooError, match="batch_size is 0"):
        zoo.embed(model, ["the cat"], batch_size=0)
    with pytest.raises(zoo.DataError, match=r"^input 3: expected a text, found 7"):
        zoo.embed(model, ["the cat", "mat", 7], batch_size=2)
    other = zoo.compose({"zoo": 1, "name": "tiny", "model": {**MODEL, "type": "masked-lm"}})
    with pytest.raises(zoo.ZooError, match="'masked-lm' does not compute one vector"):
        zoo.embed(other, ["the cat"])


def with_prompts(**options):
    options = {"prompts": {"query": "the cat ", "plain": ""}, **options}
    return compose(preprocessing={"source": "text"}, model={**MODEL, **options})


def test_a_prompt_is_a_name_or_a_text_before_each_input():
    model = with_prompts(default_prompt="query")
    with_query = zoo.embed(model, ["the cat mat", "the cat a cat"], prompt="")
    for prompt in (None, "query", "the cat "):
        vectors = zoo.embed(model, ["mat", "a cat"], prompt=prompt)
        torch.testing.assert_close(vectors, with_query)
    without = zoo.embed(model, ["mat"], prompt="")
    torch.testing.assert_close(zoo.embed(model, ["mat"], prompt="plain"), without)
    assert not torch.allclose(without, with_query[:1])


def test_the_states_of_a_prompt_can_be_left_out_of_the_mean():
    model = with_prompts(include_prompt=False, normalise=False)
    tokens = torch.tensor([[2, 3, 7]])
    states = model.eval().encode(tokens).states
    vectors = zoo.embed(model, ["mat"], prompt="query")
    torch.testing.assert_close(vectors, states[:, 2:].mean(dim=1))
    torch.testing.assert_close(zoo.embed(model, ["the cat mat"]), states.mean(dim=1))


def test_vectors_are_truncated_after_the_normalisation():
    whole = zoo.embed(with_prompts(), ["the cat"])
    model = with_prompts(truncate_dim=2)
    torch.testing.assert_close(zoo.embed(model, ["the cat"]), whole[:, :2])
    torch.testing.assert_close(zoo.embed(model, ["the cat"], truncate_dim=3), whole[:, :3])
    unit = zoo.embed(model, ["the cat"], normalise=True)
    torch.testing.assert_close(unit, torch.nn.functional.normalize(whole[:, :2], dim=-1))


def test_wrong_prompts_and_widths_raise():
    model = with_prompts()
    with pytest.raises(zoo.ZooError, match=r"no prompt named 'qeury' \(prompts: query, plain\)"):
        zoo.embed(model, ["mat"], prompt="qeury")
    with pytest.raises(zoo.DataError, match=r"input 2: a prompt is inserted before texts only"):
        zoo.embed(model, ["mat", 7], prompt="query")
    with pytest.raises(zoo.ZooError, match=r"truncate_dim is 5, but .* have 4 features"):
        zoo.embed(model, ["mat"], truncate_dim=5)
    with pytest.raises(zoo.ZooError, match="truncate_dim is 0"):
        zoo.embed(model, ["mat"], truncate_dim=0)
    with pytest.raises(zoo.SpecError, match=r"'a' is not the name of a prompt"):
        with_prompts(default_prompt="a")


def test_the_vector_of_one_text_is_a_row():
    model = compose(preprocessing={"source": "text"})
    torch.testing.assert_close(zoo.embed(model, "the cat"), zoo.embed(model, ["the cat"])[0])
