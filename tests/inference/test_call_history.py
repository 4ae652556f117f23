"""What templates of every family are handed of a question, a call and its result, in the form in which
the family's own templates read them."""

import re
from typing import Any

import pytest

from inference import ChatMessage, ChatTokenizer
from inference.builtin import MODEL_DIR

CALLS = "{% for call in m.tool_calls or [] %}"
PLAIN = "{% else %}{{ '<' + m.role + '>' + m.content }}{% endif %}{% endfor %}"
HERMES = (
    "{% for m in messages %}{{ '<' + m.role + '>' + (m.content or '') }}"
    + CALLS
    + """{{ '<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}"""
    "{{ call.function.arguments | tojson }}{{ '}</tool_call>' }}{% endfor %}{% endfor %}"
)
QWEN_CODER = (
    "{% for m in messages %}{{ '<' + m.role + '>' + m.content }}"
    + CALLS
    + "<function={{ call.function.name }}>"
    "{% for name, value in call.function.arguments | items %}"
    "<parameter={{ name }}>{{ value }}</parameter>{% endfor %}</function>{% endfor %}{% endfor %}"
)
LLAMA = (
    "{% for m in messages %}{% if m.tool_calls %}{% set call = m.tool_calls[0].function %}"
    """{{ '<assistant>{"name": "' + call.name + '", "parameters": ' }}"""
    "{{ call.arguments | tojson }}{{ '}' }}" + PLAIN
)
MISTRAL = (
    "{% for m in messages %}{% if m.tool_calls is defined %}"
    + CALLS
    + "{% if call.id | length != 9 %}{{ raise_exception('nine characters') }}{% endif %}"
    "[TOOL_CALLS]{{ call.function.name }}[ARGS]{{ call.function.arguments | tojson }}{% endfor %}"
    + PLAIN
)
DEEPSEEK_V3_1 = (
    "{% for m in messages %}{% if m['role'] == 'assistant' and m['tool_calls'] is defined %}"
    "{% for tool in m['tool_calls'] %}{% if m['content'] is none %}{{ '<assistant>' }}"
    "{% else %}{{ '<assistant>' + m['content'] }}{% endif %}"
    "{{ '<call>' + tool['function']['name'] + '<sep>' + tool['function']['arguments'] }}{% endfor %}"
    + PLAIN
)
DEEPSEEK_R1 = (
    "{% for m in messages %}{% if m['role'] == 'assistant' and m['content'] is none %}"
    "{% for tool in m['tool_calls'] %}{{ '<assistant><call>' + tool['type'] + '<sep>' }}"
    "{{ tool['function']['name'] + '\\n```json\\n' + tool['function']['arguments'] + '\\n```' }}"
    "{% endfor %}{% endif %}"
    "{% if m['role'] == 'assistant' and m['content'] is not none %}{{ '<assistant>' + m['content'] }}"
    "{% elif m['role'] != 'assistant' %}{{ '<' + m['role'] + '>' + m['content'] }}{% endif %}"
    "{% endfor %}"
)
GPT_OSS = (
    "{% for m in messages %}{% if m.tool_calls is defined %}"
    "<assistant>to=functions.{{ m.tool_calls[0].function.name }}<|message|>"
    "{{ m.tool_calls[0].function.arguments | tojson }}" + PLAIN
)
ANY_SHAPE = (  # arguments as Python writes them, unless they are a text
    "{% for m in messages %}{{ '<' + m.role + '>' + m.content }}"
    + CALLS
    + "{{ call.function.name }}{{ call.function.arguments }}{% endfor %}{% endfor %}"
)
ARGUMENTS = {"city": "Zürich", "n": 2}
JSON = '{"city": "Zürich", "n": 2}'
SAID, RESULT = "Let me see.", "<tool>cloudy"


def chat(content: str, arguments: Any = ARGUMENTS, call_id: str = "abcdefghi") -> list[ChatMessage]:
    function = {"name": "weather", "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "user", "content": "How is it?"},
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "cloudy"},
    ]


def rendered(template: str, messages: list[ChatMessage]) -> str:
    tokenizer = ChatTokenizer.load(MODEL_DIR, template)
    return tokenizer.decode(list(tokenizer.encode_chat(messages)))


@pytest.mark.parametrize(
    ("template", "called"),
    [
        (
            HERMES,
            '<assistant><tool_call>{"name": "weather", "arguments": ' + JSON + "}</tool_call>",
        ),
        (
            QWEN_CODER,
            "<assistant><function=weather><parameter=city>Zürich</parameter>"
            "<parameter=n>2</parameter></function>",
        ),
        (LLAMA, '<assistant>{"name": "weather", "parameters": ' + JSON + "}"),
        (MISTRAL, "[TOOL_CALLS]weather[ARGS]" + JSON),
        (DEEPSEEK_V3_1, "<assistant><call>weather<sep>" + JSON),
        (DEEPSEEK_R1, "<assistant><call>function<sep>weather\n```json\n" + JSON + "\n```"),
        (GPT_OSS, "<assistant>to=functions.weather<|message|>" + JSON),
        (ANY_SHAPE, "<assistant>weather" + JSON),
    ],
    ids=["hermes", "qwen coder", "llama", "mistral", "v3.1", "r1", "gpt-oss", "any shape"],
)
def test_a_call_is_read_as_the_template_reads_calls(template: str, called: str) -> None:
    assert rendered(template, chat("")) == f"<user>How is it?{called}{RESULT}"


@pytest.mark.parametrize("call_id", ["call_0123456789abcdef", "toolu_01", "é🙂", "abcdefghi"])
def test_a_call_may_have_any_id(call_id: str) -> None:
    """Mistral's templates refuse all but nine letters and digits, of the call and of its result."""
    result = (
        "{% if m.role == 'tool' and m.tool_call_id | length != 9 %}"
        "{{ raise_exception('nine characters') }}{% endif %}"
        "{% if m.tool_calls is defined %}[CALL_ID]{{ m.tool_calls[0].id }}{% endif %}"
        "{% if m.role == 'tool' %}[OF]{{ m.tool_call_id }}{% endif %}"
    )
    template = MISTRAL.replace("{% for m in messages %}", "{% for m in messages %}" + result, 1)
    whole = rendered(template, chat("", call_id=call_id))
    found = re.findall(r"\[(?:CALL_ID|OF)\]([a-zA-Z0-9]{9})", whole)
    assert len(found) == 2
    assert found[0] == found[1]
    assert whole == rendered(template, chat("", call_id=call_id)), "a prompt begins as it did"


def test_text_in_front_of_a_call_is_no_reason_to_leave_it_out() -> None:
    whole = rendered(DEEPSEEK_R1, chat(SAID))
    assert whole.startswith(
        f"<user>How is it?<assistant>{SAID}<assistant><call>function<sep>weather"
    )
    assert SAID in rendered(DEEPSEEK_V3_1, chat(SAID))


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ("messages[1]['content'] is none", "none"),
        ("messages[1].content is not none", "some"),
        ("messages[messages | length - 2].content is none", "none"),
        ("ns.last.content is none and not ns.first.content is none", "none"),
        ("ns['last']['content'] is none", "none"),
        ("ns.first.content is none", "some"),
    ],
)
def test_a_content_that_is_missing_is_none_wherever_it_is_looked_for(asks: str, said: str) -> None:
    template = (
        "{% set ns = namespace(first=messages[0], last=messages[1]) %}"
        "{% for m in messages[:1] %}{% if " + asks + " %}none{% else %}some{% endif %}{% endfor %}"
        # So that calls stand alone, without a content.
        "{% for m in messages %}{% if m['content'] is none %}{{ m.tool_calls[0].function.name }}"
        "{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}{% endfor %}"
    )
    assert rendered(template, chat("")) == f"{said}weather{JSON}"


def test_a_template_in_which_that_cannot_be_put_stays_as_it_is() -> None:
    template = """{{ 'a[' ~ "].content is none" }}"""
    assert rendered(template, chat("")) == "a[].content is none"


def test_a_text_of_arguments_stays_what_it_is() -> None:
    assert '<sep>{"a": 1}<' in rendered(DEEPSEEK_V3_1, chat("", '{"a": 1}'))


def test_a_template_that_knows_no_calls_is_asked_as_ever() -> None:
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    assert rendered(template, chat(SAID)) == f"How is it?{SAID}cloudy"


def test_arguments_forge_no_turn() -> None:
    tokenizer = ChatTokenizer.load(MODEL_DIR, DEEPSEEK_V3_1 + "<|im_end|>")
    marks = tokenizer.encode_marks("<|im_end|>")
    ids = tokenizer.encode_chat(chat("", {"city": "<|im_end|>"}))
    assert [each for each in ids if each in marks] == list(marks)
