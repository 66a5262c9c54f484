import pickle

import pytest

from zoo import ZooError
from zoo.data.chat_template import MAX_TEMPLATE, ChatTemplate

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}
{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}
{% set system_message = false %}{% endif %}{% for message in loop_messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{% endif %}{% if loop.index0 == 0 and system_message != false %}
{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}
{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}
{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}
{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""
GEMMA = """{{ bos_token }}
{%- for message in messages -%}
    {%- set role = "model" if message.role == "assistant" else message.role -%}
    {{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\n' }}
{%- endif -%}"""
TOOLS = """{%- macro shout(x) -%}{{ x | upper }}!{%- endmacro -%}
{%- set ns = namespace(n=0) -%}
{%- for m in messages if m.role != 'system' -%}
{%- set ns.n = ns.n + 1 -%}
{%- if loop.first and not add_generation_prompt -%}{{ messages | tojson }}{%- endif -%}
{{ ns.n ~ ':' ~ shout(m.content.split(' ')[0]) }}{{ ['a', 'b'] | join('-') }}
{%- generation -%}{{ m.content | default('x') | replace('e', 'E') }}{%- endgeneration -%}
{%- if loop.index > 1 -%}{%- break -%}{%- endif -%}
{%- endfor -%}{% if strftime_now is defined %}{% endif %}"""
MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": " Hello über there\n"},
    {"role": "assistant", "content": "Hi! <b>"},
    {"role": "user", "content": "What is 2 + 2?"},
]


@pytest.mark.parametrize("template", [CHATML, LLAMA2, GEMMA, TOOLS])
@pytest.mark.parametrize("open_answer", [False, True])
def test_the_text_is_that_of_transformers(template, open_answer):
    utils = pytest.importorskip("transformers.utils.chat_template_utils")
    (expected,), _ = utils.render_jinja_template(
        conversations=[MESSAGES],
        chat_template=template,
        add_generation_prompt=open_answer,
        bos_token="<s>",
        eos_token="</s>",
    )
    options = {"bos_token": "<s>", "eos_token": "</s>"}
    made = ChatTemplate(template).render(MESSAGES, add_generation_prompt=open_answer, **options)
    assert made == expected
    again = pickle.loads(pickle.dumps(ChatTemplate(template)))
    assert again.render(MESSAGES, add_generation_prompt=open_answer, **options) == made


def test_messages_are_not_changed_and_rejections_are_reported():
    before = [dict(message) for message in MESSAGES]
    with pytest.raises(ZooError, match="Conversation roles must alternate"):
        ChatTemplate(LLAMA2).render([MESSAGES[1], MESSAGES[1]])
    assert before == MESSAGES


NAMESPACE = "{% set ns = namespace(s='ab') %}{% for i in range(100) %}"
LARGE = [
    "{% for a in range(99999999) %}{% endfor %}",
    "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "{{ 'a' * 10000000000 }}",
    "{{ 2 ** 99999999999 }}",
    "{{ '%99999999999d' % 3 }}",
    "{{ '{:9999999999}'.format(3) }}",
    "{{ 'x'.center(9999999999) }}",
    "{{ 'x' | center(9999999999) }}",
    NAMESPACE + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    NAMESPACE + "{% set ns.s = ns.s + ns.s %}{% endfor %}",
    NAMESPACE + "{% set ns.s = ns.s | replace('a', ns.s) %}{% endfor %}",
    NAMESPACE + "{% set ns.s = ns.s | join(ns.s) %}{% endfor %}",
    NAMESPACE + "{% set ns.s = ns.s.join(ns.s) %}{% endfor %}",
    NAMESPACE + "{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}",
    NAMESPACE + "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
    NAMESPACE + "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s | tojson }}",
    NAMESPACE.replace("'ab'", "9") + "{% set ns.s = ns.s * ns.s %}{% endfor %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ ''.__class__.__mro__ }}",
    "{{ cycler.__init__.__globals__ }}",
    "{% include '/etc/passwd' %}",
    "{{ messages.append(3) }}",
    "{{ messages[9].content }}",
]


@pytest.mark.parametrize("template", LARGE)
def test_templates_that_are_too_costly_or_leave_the_sandbox_raise(template):
    with pytest.raises(ZooError, match=r"^the chat template (cannot be applied|is not valid): "):
        ChatTemplate(template).render(MESSAGES)


def test_templates_that_are_not_valid_raise():
    with pytest.raises(ZooError, match=r"is not valid: .*\(line 2\)"):
        ChatTemplate("\n{% if %}")
    with pytest.raises(ZooError, match="characters, more than 65,536"):
        ChatTemplate("x" * (MAX_TEMPLATE + 1))
