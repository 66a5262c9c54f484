"""Conversations: a chat template travels with an imported model and is applied to messages."""

import io
import json

import pytest
import torch
import transformers as hf
from hf_model_kit import hf_model
from hf_models import EOS
from template_kit import HOSTILE
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
from typer.testing import CliRunner

import zoo
from zoo.artifact import read_header
from zoo.cli.chat import converse
from zoo.cli.main import app
from zoo.data.chat_template import ChatTemplate
from zoo.errors import InputError, ZooError, ZooWarning

WORDS = ["<pad>", "<s>", "</s>", "<user>", "<bot>", *(f"w{i}" for i in range(26))]
TEMPLATE = (
    "{% for m in messages %}{{ '<user>' if m.role == 'user' else '<bot>' }} {{ m.content }} "
    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}"
)
MESSAGES = [
    {"role": "user", "content": "w4 w9"},
    {"role": "assistant", "content": "w1"},
    {"role": "user", "content": "w7"},
]


def build_folder(folder, *, as_file=False, template=TEMPLATE):
    hf_model("llama").save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in WORDS[1:5]])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    named = [{"name": "tools", "template": "no"}, {"name": "default", "template": TEMPLATE}]
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": {"__type": "AddedToken", "content": "</s>"},
        "chat_template": "not used" if as_file else named,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if as_file:
        (folder / "chat_template.jinja").write_text(template)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_folder(tmp_path_factory.mktemp("chat") / "theirs")


@pytest.fixture(scope="module")
def file(folder):
    return zoo.import_model(folder, folder.parent / "model.safetensors")


def expected_answer(folder, messages, length):
    theirs = hf.LlamaForCausalLM.from_pretrained(folder)
    tokenizer = hf.PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    ids = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=False
    )
    with torch.no_grad():
        rows = theirs.generate(
            ids, max_new_tokens=length, do_sample=False, eos_token_id=EOS, pad_token_id=EOS
        )
    return tokenizer.decode(rows[0, ids.shape[1] :], skip_special_tokens=True)


def test_messages_are_answered_as_in_transformers(folder, file):
    model = zoo.load(file)
    ((best,), _) = zoo.generate(model, [MESSAGES, MESSAGES[:1]], max_length=6)
    assert best.text == expected_answer(folder, MESSAGES, 6)
    assert "".join(zoo.stream(model, MESSAGES, max_length=6)) == best.text


def test_the_file_of_a_template_takes_precedence_and_an_export_contains_it(file, tmp_path):
    other = zoo.import_model(
        build_folder(tmp_path / "theirs", as_file=True), tmp_path / "model.safetensors"
    )
    stored = read_header(other).tokenizer["chat"]
    assert stored == read_header(file).tokenizer["chat"]
    assert ChatTemplate.from_json(stored).tokens == {"bos_token": "<s>", "eos_token": "</s>"}
    exported = hf.AutoTokenizer.from_pretrained(zoo.export_model(other, tmp_path / "out"))
    expected = ChatTemplate(TEMPLATE, {"eos_token": "</s>"}).render(MESSAGES)
    assert exported.apply_chat_template(MESSAGES, tokenize=False) == expected


def test_a_template_that_cannot_be_used_is_reported_at_import(tmp_path):
    folder = build_folder(tmp_path / "theirs", as_file=True, template=HOSTILE["%(a)d"])
    with pytest.warns(ZooWarning, match=r"not take conversations: the chat template .* more than"):
        file = zoo.import_model(folder, tmp_path / "model.safetensors")
    with pytest.raises(ZooError, match=r"the chat template .* more than"):
        zoo.generate(zoo.load(file), [MESSAGES])


def test_one_conversation_on_the_command_line(folder, file):
    done = run("generate", file, json.dumps(MESSAGES), "w4 w9", "--chat", "--max-length", "6")
    answers = [expected_answer(folder, messages, 6) for messages in (MESSAGES, MESSAGES[:1])]
    assert done.output.splitlines() == answers


def test_a_conversation_turn_by_turn(folder, file):
    first = expected_answer(folder, MESSAGES[:1], 3)
    messages = [MESSAGES[0], {"role": "assistant", "content": first}, MESSAGES[2]]
    second = expected_answer(folder, messages, 3)
    for end in ("", "/exit\nw1\n"):
        done = run("generate", file, "--chat", "--max-length", "3", input="w4 w9\n\nw7\n" + end)
        assert (done.exit_code, done.output.splitlines()) == (0, [first, second])


def test_an_interrupt_ends_the_conversation(file, monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

        def readline(self):
            line = super().readline()
            if not line:
                raise KeyboardInterrupt
            return line

    monkeypatch.setattr("sys.stdin", Terminal("w4 w9\n"))
    converse(zoo.load(file), {"max_length": 3})
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert captured.err == "Type a message; /exit or Ctrl-D ends the conversation.\n> > "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{", "not valid JSON"),
        ("[1]", r"contains \[1\]; expected messages such as"),
        ('[{"content": "a"}]', "expected messages such as"),
    ],
)
def test_invalid_messages_are_rejected(file, text, message):
    done = run("generate", file, text, "--chat")
    with pytest.raises(InputError, match=message):
        raise done.exception


def test_a_model_without_a_template_is_rejected(tmp_path):
    hf_model("gpt2").save_pretrained(tmp_path / "theirs")
    model = zoo.load(zoo.import_model(tmp_path / "theirs", tmp_path / "m.safetensors"))
    with pytest.raises(ZooError, match="has no chat template; pass a prompt instead"):
        zoo.generate(model, [MESSAGES])


def run(*arguments, **options):
    return CliRunner().invoke(app, list(map(str, arguments)), **options)
