"""Chat templates render as in transformers; hostile ones are stopped."""

import json
import pickle
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import transformers as hf
from template_kit import FORBIDDEN, HOSTILE
from thread_kit import run_in_threads
from tokenizers import Tokenizer, models

from zoo.data.chat_template import MAX_TEMPLATE, ChatTemplate
from zoo.data.template_sandbox import Renderer
from zoo.errors import ZooError

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
MESSAGES = [
    {"role": "system", "content": "  Be brief. "},
    {"role": "user", "content": "Hello, wörld <b>"},
    {"role": "assistant", "content": "Hi!\n"},
    {"role": "user", "content": "Why?"},
]

LLAMA_3 = """
{{- bos_token }}
{%- set date_string = "26 Jul 2024" if not date_string is defined else date_string %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n" }}
{{- "Today Date: " + date_string + "\n\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {{- message.tool_calls[0].function | tojson }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""  # noqa: E501
QWEN = """
{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- for tool in tools %}{{- "\n" }}{{- tool | tojson }}{%- endfor %}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if message.role == "user" %}{%- set ns.last_query_index = index %}{%- break %}{%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\n') %}
        {{- '<|im_start|>assistant\n' + content + ' ' ~ loop.index0 ~ '/' ~ ns.last_query_index }}
        {{- message | tojson(indent=2) }}<|im_end|>
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
"""
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% endif %}"
)
GEMMA = """{{ bos_token }}
{% if messages[0]['role'] == 'system' %}{% set messages = messages[1:] %}{% endif %}
{% for message in messages %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {% endif %}
    {% set role = 'model' if message['role'] == 'assistant' else message['role'] %}
{{ '<start_of_turn>' + role + '\n' + (message['content'] | trim) + '<end_of_turn>\n' }}
    {% generation %}{{ message.content|upper }}{% endgeneration %}
{% endfor %}
{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"""
MISTRAL = """
{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" and loop.last and system_message is defined %}
        {{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
    {%- elif message["role"] == "user" %}
        {{- "[INST] " + message["content"] + "[/INST]" }}
    {%- else %}
        {{- " " + message["content"]|trim + eos_token }}
    {%- endif %}
{%- endfor %}"""
PHI = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>\n' + message['content'] + "
    "'<|end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}"
    "{% else %}{{ eos_token }}{% endif %}"
)
MACRO = """{% macro turn(m, name='') %}[{{ name or m.role }}] {{ m['content'] }}{% endmacro %}
{% for m in messages if m.role != 'system' %}
{% set last %}{{ turn(m, name=loop.cycle('a', 'b')) }} of {{ loop.length }}{% endset %}
{{ last|replace('H', 'J') }}{{ messages|map(attribute='role')|unique|join(',') }}
{{ ('%s' % m.content) * 2 }}{{ m.items()|list|length }}
{{ m.content is string and m.name is not defined }}
{% else %}none{% endfor %}{{ eos_token if not add_generation_prompt }}"""
FORMATS = """{% for m in messages %}
{{ '%-9s|%(a)5.2f' % {'a': 2} if m.x else '%-9s|%5.2f' % (m.role, loop.index) }}
{{ '{:>9}|{m[role]!r}|{:^7}'.format(loop.index, 'x', m=m) }}{{ m.role.center(9) ~ m.role.zfill(9) }}
{{ m.role|center(9) }}{{ m.content|wordwrap(3) }}{{ m.content|truncate(4) }}{{ m.role.ljust(9) }}
{{ 'a\tb'.expandtabs(4) }}{{ '%s and %s'|format(m.role, 1) }}{{ [1, 2, 3]|batch(2)|list|tojson }}
{{ messages|groupby('role')|length }}{{ [0] * 3 }}{{ 2 ** 70 }}{{ m|tojson(indent=99)|length }}
{{ m.content|indent(200, true) }}{{ m.content|wordcount }}{{ strftime_now('%%Y') }}
{% endfor %}"""
TEMPLATES = {
    "llama-3": LLAMA_3,
    "qwen": QWEN,
    "chatml": CHATML,
    "gemma": GEMMA,
    "mistral": MISTRAL,
    "phi": PHI,
    "macro": MACRO,
    "formats": FORMATS,
}


@pytest.fixture(scope="module")
def theirs():
    backend = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    return hf.PreTrainedTokenizerFast(tokenizer_object=backend, **TOKENS)


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_render_as_in_transformers(name, theirs):
    template = ChatTemplate.from_json(ChatTemplate(TEMPLATES[name], TOKENS).to_json())
    for messages in (MESSAGES, MESSAGES[:2], MESSAGES[1:]):
        for prompt in (False, True):
            expected = theirs.apply_chat_template(
                messages,
                chat_template=TEMPLATES[name],
                tokenize=False,
                add_generation_prompt=prompt,
            )
            assert template.render(messages, add_generation_prompt=prompt) == expected


def test_an_error_of_a_template_is_reported():
    template = ChatTemplate(GEMMA, TOKENS)
    with pytest.raises(ZooError, match="cannot format the messages: Conversation roles must alt"):
        template.render(MESSAGES[2:])
    with pytest.raises(ZooError, match="'dict object' has no attribute"):
        ChatTemplate("{{ messages[0].a.b }}").render(MESSAGES)
    with pytest.raises(ZooError, match=r"the chat template is not valid: .*endfor"):
        ChatTemplate("{% for m in messages %}").render(MESSAGES)
    with pytest.raises(ZooError, match="at most 200,000"):
        ChatTemplate("a" * (MAX_TEMPLATE + 1))


SAMPLE = [
    "is in of shared lists",
    "key of shared tuples",
    "upper of shared dicts",
    "raise of shared lists",
    "tojson of deep lists",
    "nested loops",
    "doubling +",
    "crash",
    "%(a)d",
    "str.format",
    "join text",
    "tojson separators",
    "nested parentheses",
    "variables",
]


@pytest.mark.parametrize("name", SAMPLE)
def test_hostile_templates_are_stopped(name):
    template = ChatTemplate(HOSTILE[name], max_seconds=0.1)
    with pytest.raises(ZooError, match="the chat template") as raised:
        template.render(MESSAGES)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("name", FORBIDDEN)
def test_templates_cannot_access_the_internals_of_python(name):
    try:
        text = Renderer()(FORBIDDEN[name], {"messages": MESSAGES})
    except ValueError as error:
        text = str(error)
    assert not re.search("<|object at|root:|'os'", text)


SCRIPT = """
import json, resource, sys, time
from concurrent.futures import ThreadPoolExecutor
sys.path.insert(0, sys.argv[1])
from template_kit import HOSTILE
from zoo.data.chat_template import ChatTemplate
from zoo.errors import ZooError

def render(text):
    start = time.monotonic()
    try:
        ChatTemplate(text, max_seconds=0.5).render([{"role": "user", "content": "Hello"}])
    except ZooError:
        pass
    return time.monotonic() - start

with ThreadPoolExecutor(2) as pool:
    seconds = list(pool.map(render, HOSTILE.values()))
used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({"seconds": max(seconds), "kilobytes": max(each.ru_maxrss for each in used)}))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory is limited on Linux")
def test_all_hostile_templates_end_and_take_little_memory():
    assert len(HOSTILE) > 400
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[1] / "kits")]
    used = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert used["seconds"] < 20  # on a busy machine
    assert used["kilobytes"] < 300_000


def test_long_conversations_are_within_the_bounds(theirs):
    messages = [
        {"role": ("user", "assistant")[i % 2], "content": f"{i} " * 300} for i in range(1000)
    ]
    for name in ("qwen", "llama-3", "gemma", "chatml"):
        assert len(ChatTemplate(TEMPLATES[name], TOKENS).render(messages)) > 1_000_000


def test_a_template_can_be_pickled():
    template = pickle.loads(pickle.dumps(ChatTemplate("{{ a }}", {"a": "b"}, max_seconds=9)))
    assert template.render(MESSAGES) == "b"


def test_threads_render_in_parallel():
    messages = [{"role": "user", "content": f"{i} " * 300} for i in range(1500)]
    template = ChatTemplate(TEMPLATES["chatml"], TOKENS)
    render = partial(template.render, messages)
    expected = render()
    for results in run_in_threads([render] * 4, times=3):
        assert results == [expected] * 3
