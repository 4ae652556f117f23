"""What a chat, kept or temporary, is to be started with, as it is asked for over the socket and /api."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema
from pydantic import AfterValidator, Field

from chat.errors import BadFrame
from chat.parameters import Parameters
from chat.personal_models import HistoryStrategy
from chat.storable import is_storable

MAX_SYSTEM_PROMPT_CHARS = 20_000
MAX_TOOL_SERVERS = 20
MAX_SERVER_NAME_CHARS = 32


@dataclass(frozen=True, slots=True)
class Setup:
    """Beside the user's own instructions. What is left out is the assistant's, or the user's own."""

    assistant_id: UUID | None = None
    system_prompt: str = ""
    parameters: dict[str, Any] | None = None
    history_strategy: str = ""
    tool_servers: tuple[str, ...] | None = None


AS_USUAL = Setup()


def _storable(name: str) -> str:
    if not is_storable(name):
        raise ValueError("holds a character that cannot be stored")
    return name


ServerName = Annotated[
    str, Field(min_length=1, max_length=MAX_SERVER_NAME_CHARS), AfterValidator(_storable)
]
ServerNames = Annotated[
    list[ServerName],
    Field(max_length=MAX_TOOL_SERVERS),
]


class SetupIn(Schema):
    """Of /api."""

    assistant: UUID | None = None
    system_prompt: str = ""
    parameters: Parameters | None = None
    history_strategy: HistoryStrategy | None = None
    tool_servers: ServerNames | None = None

    def as_setup(self) -> Setup:
        """Raises BadFrame."""
        return Setup(
            self.assistant,
            checked_system_prompt(self.system_prompt),
            self.parameters.as_values() if self.parameters else None,
            self.history_strategy or "",
            None if self.tool_servers is None else tuple(self.tool_servers),
        )


def checked_system_prompt(value: str) -> str:
    """Raises BadFrame for one that is too long or cannot be stored."""
    value = value.strip()
    if len(value) > MAX_SYSTEM_PROMPT_CHARS or not is_storable(value):
        raise BadFrame(
            f"'system_prompt' has at most {MAX_SYSTEM_PROMPT_CHARS:,} characters, none of them NUL."
        )
    return value


def checked_tool_servers(value: object) -> tuple[str, ...]:
    """Names of servers; whether there are such, and who may use them, is asked with each answer. Raises
    BadFrame."""
    is_fine = isinstance(value, list) and all(
        isinstance(one, str) and 0 < len(one) <= MAX_SERVER_NAME_CHARS for one in value
    )
    if not isinstance(value, list) or not is_fine or len(value) > MAX_TOOL_SERVERS:
        raise BadFrame(f"'tool_servers' is a list of at most {MAX_TOOL_SERVERS} names.")
    if not all(map(is_storable, value)):
        raise BadFrame("'tool_servers' holds a character that cannot be stored.")
    return tuple(value)
