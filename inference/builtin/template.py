"""The chat template: ChatML with Hermes tool calls, once as Jinja and once as fast Python.

Both give the same text (a test compares them). The Python form also says which parts the
assistant wrote, for the loss.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from inference.builtin.dialog import Dialog, Message, Tool

IM_START, IM_END, END_OF_TEXT = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
ADDED_TOKENS = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
)

_TOOLS_HEAD = "# Tools\n\nYou may call these functions:\n<tools>"
_TOOLS_TAIL = (
    "</tools>\n\nTo call a function, answer with:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)

JINJA = (
    """{%- set system = messages[0].content if messages and messages[0].role == 'system' else '' %}
{%- if system or tools %}
    {{- '<|im_start|>system\\n' + system }}
    {%- if tools %}
        {{- '\\n\\n' if system else '' }}
        {{- '"""
    + _TOOLS_HEAD.replace("\n", "\\n")
    + """' }}
        {%- for tool in tools %}
            {{- '\\n' + (tool | tojson) }}
        {%- endfor %}
        {{- '\\n"""
    + _TOOLS_TAIL.replace("\n", "\\n")
    + """' }}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'system' and loop.first %}
    {%- elif message.role == 'assistant' and message.tool_calls %}
        {{- '<|im_start|>assistant\\n' + (message.content or '') }}
        {%- for tool_call in message.tool_calls %}
            {%- set call = tool_call.function if tool_call.function else tool_call %}
            {{- '' if loop.first and not message.content else '\\n' }}
            {{- '<tool_call>\\n{"name": "' + call.name + '", "arguments": ' }}
            {{- call.arguments if call.arguments is string else call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '' if not loop.first and messages[loop.index0 - 1].role == 'tool' else '<|im_start|>user' }}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {{- '' if not loop.last and messages[loop.index0 + 1].role == 'tool' else '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + (message.content or '') + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of rendered text; `is_target` when the assistant writes it (its end mark included)."""

    text: str
    is_target: bool


def system_text(system: str, tools: Sequence[Tool]) -> str:
    """The content of the system block; empty when there is none."""
    if not tools:
        return system
    lines = [_TOOLS_HEAD, *(json.dumps(tool, ensure_ascii=False) for tool in tools), _TOOLS_TAIL]
    return ("\n\n" if system else "").join((system, "\n".join(lines)))


def prompt_text(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    """The prompt for the next answer, generation prompt included."""
    body = "".join(s.text for s in segments(Dialog("", tuple(messages), tuple(tools))))
    return f"{body}{IM_START}assistant\n"


def segments(dialog: Dialog) -> list[Segment]:
    """The rendered dialog in runs of prompt and target text."""
    found: list[Segment] = []
    messages = dialog.messages
    system = messages[0].content if messages and messages[0].role == "system" else ""
    head = system_text(system, dialog.tools)
    prompt = f"{IM_START}system\n{head}{IM_END}\n" if head else ""
    for message in messages[1:] if system else messages:
        if message.role == "assistant":
            found.append(Segment(f"{prompt}{IM_START}assistant\n", False))
            found.append(Segment(f"{message.text()}{IM_END}", message.is_learnt))
            prompt = "\n"
        elif message.role == "tool":
            prompt += (
                f"{IM_START}user\n<tool_response>\n{message.content}\n</tool_response>{IM_END}\n"
            )
        else:
            prompt += f"{IM_START}{message.role}\n{message.content}{IM_END}\n"
    found.append(Segment(prompt, False))
    return found
