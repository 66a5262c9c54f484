import pytest

from zoo import DataError
from zoo.data.chat_template import ChatTemplate, encode_chat
from zoo.data.tokenizer import Tokenizer
from zoo.plugin import TensorSchema

WORDS = ["<pad>", "<s>", "</s>", "<unk>", "user", "assistant", "a", "b", "c", ":"]
TOKENIZER = (
    '{"version": "1.0", "added_tokens": ['
    + ", ".join(
        f'{{"id": {n}, "content": "{WORDS[n]}", "single_word": false, "lstrip": false, "rstrip": '
        'false, "normalized": false, "special": true}'
        for n in range(3)
    )
    + '], "pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel", "vocab": {'
    + ", ".join(f'"{word}": {n}' for n, word in enumerate(WORDS))
    + '}, "unk_token": "<unk>"}}'
)
PLAIN = ChatTemplate(
    "{% for m in messages %}{{ m.role }}:{{ m.content }} {% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
SCHEMA = TensorSchema(("B", "T"), "integer", below=10, prefix=(1,), suffix=(2,))


def chat(*contents):
    roles = ("user", "assistant") * 2
    return [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]


def test_the_answers_are_marked_with_the_end_token():
    ids, answers = encode_chat(Tokenizer(TOKENIZER), PLAIN, chat("a", "b c", "a", "c"), SCHEMA)
    words = [WORDS[n] for n in ids]
    assert " ".join(words) == "user : a assistant : b c user : a assistant : c"
    # Of the batch: bos, the tokens, eos.
    batch = zip(["<s>", *words, "</s>"], answers, strict=True)
    marked = [word for word, is_answer in batch if is_answer]
    assert marked == ["b", "c", "c", "</s>"]


def test_special_tokens_of_the_template_are_not_doubled():
    template = ChatTemplate(
        "{{ bos_token }}{% for m in messages %} {{ m.role }}:{{ m.content }}"
        "{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}",
        {"bos_token": "<s>", "eos_token": "</s>"},
    )
    ids, answers = encode_chat(Tokenizer(TOKENIZER), template, chat("a", "b"), SCHEMA)
    assert [WORDS[n] for n in ids] == ["user", ":", "a", "assistant", ":", "b"]
    assert answers == [False] * 4 + [True] * 4  # the template does not open an answer: its role too


def test_a_prompt_ends_where_an_answer_begins():
    ids, answers = encode_chat(Tokenizer(TOKENIZER), PLAIN, chat("a"), SCHEMA, open_answer=True)
    assert [WORDS[n] for n in ids] == ["user", ":", "a", "assistant", ":"]
    assert not any(answers)


def test_special_tokens_in_messages_and_templates_that_change_turns_raise():
    with pytest.raises(DataError, match="'b </s>' contains the special token '</s>'"):
        encode_chat(Tokenizer(TOKENIZER), PLAIN, chat("a", "b </s>"), SCHEMA)
    last = ChatTemplate("{{ messages[-1].content }}")
    with pytest.raises(DataError, match="changes earlier turns, so answer 2 cannot be found"):
        encode_chat(Tokenizer(TOKENIZER), last, chat("a", "b", "c", "a"), SCHEMA)
