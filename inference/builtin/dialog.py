"""The values that the grammars make: messages, tool schemas and whole dialogs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
Tool = Mapping[str, Any]
"""A function in OpenAI's format: {"type": "function", "function": {name, description, parameters}}."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the assistant."""

    name: str
    arguments: Mapping[str, Any]

    def text(self) -> str:
        """The call as the model writes it (Hermes form)."""
        body = json.dumps(
            {"name": self.name, "arguments": dict(self.arguments)}, ensure_ascii=False
        )
        return f"<tool_call>\n{body}\n</tool_call>"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `also` lists equally right answers; `is_scored` marks what a score item checks.

    `is_learnt` is False for an assistant message that is no example to follow (a cut answer).
    """

    role: Role
    content: str
    call: Call | None = None
    also: tuple[str, ...] = ()
    is_scored: bool = False
    is_learnt: bool = True

    def text(self) -> str:
        """What stands between the role line and the end mark."""
        return self.call.text() if self.call else self.content

    def as_json(self) -> dict[str, Any]:
        """The message in OpenAI's format, as the chat template takes it."""
        if self.call is None:
            return {"role": self.role, "content": self.content}
        function = {"name": self.call.name, "arguments": dict(self.call.arguments)}
        return {
            "role": self.role,
            "content": self.content,
            "tool_calls": [{"type": "function", "function": function}],
        }


@dataclass(frozen=True, slots=True)
class Dialog:
    """A finished conversation with the tools that were offered."""

    skill: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "skill": self.skill,
            "messages": [message.as_json() for message in self.messages],
            "tools": list(self.tools),
        }


def function_tool(
    name: str,
    description: str,
    properties: Mapping[str, Mapping[str, Any]],
    required: Sequence[str],
) -> Tool:
    """A tool schema in OpenAI's function format."""
    parameters = {"type": "object", "properties": dict(properties), "required": list(required)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def name_of(tool: Tool) -> str:
    return str(tool["function"]["name"])
