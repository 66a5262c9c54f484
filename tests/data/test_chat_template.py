"""Chat templates render as in transformers; hostile ones are stopped."""

from functools import partial

import pytest
import transformers as hf
from thread_kit import run_in_threads
from tokenizers import Tokenizer, models

from zoo.data.chat_template import MAX_TEMPLATE, ChatTemplate
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
MACRO = """{% macro turn(m, name='') %}[{{ name or m.role }}] {{ m['content'] }}{% endmacro %}
{% for m in messages if m.role != 'system' %}
{% set last %}{{ turn(m, name=loop.cycle('a', 'b')) }} of {{ loop.length }}{% endset %}
{{ last|replace('H', 'J') }}{{ messages|map(attribute='role')|unique|join(',') }}
{{ ('%s' % m.content) * 2 }}{{ m.items()|list|length }}
{{ m.content is string and m.name is not defined }}
{% else %}none{% endfor %}{{ eos_token if not add_generation_prompt }}"""
TEMPLATES = {"llama-3": LLAMA_3, "qwen": QWEN, "chatml": CHATML, "gemma": GEMMA, "macro": MACRO}


@pytest.fixture(scope="module")
def theirs():
    backend = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    return hf.PreTrainedTokenizerFast(tokenizer_object=backend, **TOKENS)


@pytest.mark.parametrize("prompt", [False, True])
@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_render_as_in_transformers(name, prompt, theirs):
    for messages in (MESSAGES, MESSAGES[:2], MESSAGES[1:]):
        expected = theirs.apply_chat_template(
            messages, chat_template=TEMPLATES[name], tokenize=False, add_generation_prompt=prompt
        )
        template = ChatTemplate.from_json(ChatTemplate(TEMPLATES[name], TOKENS).to_json())
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


def growing(step):
    """Return a template that applies a step to a value 99 times, each time at least doubling it."""
    loop = "{% for i in range(99) %}" + step + "{% endfor %}"
    return "{% set ns = namespace(s='ab', t=[1]) %}" + loop


HOSTILE = [
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    growing("{% set ns.s = ns.s ~ ns.s %}"),
    growing("{% set ns.s = ns.s + ns.s %}"),
    growing("{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}"),
    growing("{% set ns.s = ns.s.replace('a', ns.s) %}"),
    growing("{% set ns.s = ns.s|replace('a', ns.s) %}"),
    growing("{% set ns.s = [ns.s, ns.s]|join(ns.s) %}"),
    growing("{% set ns.s = ns.s.join([ns.s, ns.s]) %}"),
    growing("{% set ns.t = ns.t + ns.t %}"),
    growing("{% set ns.t = [ns.t, ns.t] %}") + "{{ ns.t }}",
    growing("{% set ns.t = [ns.t, ns.t] %}") + "{{ ns.t ~ '' }}",
    growing("{% set ns.t = [ns.t, ns.t] %}") + "{{ ns.t|tojson }}",
    growing("{% set ns.t = [ns.t, ns.t] %}") + "{{ ns.t|string }}",
    growing("{% set ns.t = [ns.t, ns.t] %}") + "{{ ns.t == [ns.t, 1] }}",
    "{{ [[1] * 99999] * 99999 }}",
    "{{ 'a' * 10**9 }}",
    "{{ 9**9**9 }}",
    "{{ 'x'.center(10**9) }}",
    "{{ 'x'|center(1000000000) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '{:1000000000}'.format(1) }}",
    "{{ '{:1000000000}'.format_map({}) }}",
    "{{ messages|tojson(indent=1000000000) }}",
    "{{ 'x'|indent(1000000000) }}",
    "{{ lipsum(n=10**7) }}",
    "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% macro f(n) %}{{ f(n-1) }}{% endmacro %}{{ f(60) }}",
    "{% for x in range(99999) %}{{ range(99999)|sum }}{% endfor %}",
    "{% for x in range(99999) %}{{ 'z' in range(99999)|map('string') }}{% endfor %}",
    "{% set a = range(99999)|list %}{% for x in range(99999) %}{{ 'z' in a }}{% endfor %}",
    "{{ ''.__class__.__mro__ }}",
    "{{ messages.append(1) }}",
    "{{ cycler.__init__.__globals__ }}",
    "{% include 'x' %}",
    "{% import 'os' as os %}",
    "{{ strftime_now('%9999999d') }}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "{{ " + "-" * 90000 + "1 }}",
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_templates_are_stopped(number):
    with pytest.raises(ZooError, match="the chat template") as raised:
        ChatTemplate(HOSTILE[number]).render(MESSAGES)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_long_conversations_are_within_the_bounds(theirs):
    messages = [
        {"role": ("user", "assistant")[i % 2], "content": f"{i} " * 300} for i in range(1000)
    ]
    for name in ("qwen", "llama-3", "gemma", "chatml"):
        assert len(ChatTemplate(TEMPLATES[name], TOKENS).render(messages)) > 1_000_000


def test_each_thread_has_its_own_bound():
    messages = [{"role": "user", "content": f"{i} " * 300} for i in range(1500)]
    template = ChatTemplate(TEMPLATES["chatml"], TOKENS)
    render = partial(template.render, messages)
    expected = render()
    for results in run_in_threads([render] * 4, times=3):
        assert results == [expected] * 3
