"""What a chat, kept or temporary, is to be started with, as it is asked for over the socket and /api."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ninja import Schema

from chat.errors import BadFrame
from chat.parameters import Parameters
from chat.personal_models import HistoryStrategy
from chat.storable import is_storable

MAX_SYSTEM_PROMPT_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Setup:
    """Beside the user's own instructions. What is left out is the assistant's, or the user's own."""

    assistant_id: UUID | None = None
    system_prompt: str = ""
    parameters: dict[str, Any] | None = None
    history_strategy: str = ""


AS_USUAL = Setup()


class SetupIn(Schema):
    """Of /api."""

    assistant: UUID | None = None
    system_prompt: str = ""
    parameters: Parameters | None = None
    history_strategy: HistoryStrategy | None = None

    def as_setup(self) -> Setup:
        """Raises BadFrame."""
        return Setup(
            self.assistant,
            checked_system_prompt(self.system_prompt),
            self.parameters.as_values() if self.parameters else None,
            self.history_strategy or "",
        )


def checked_system_prompt(value: str) -> str:
    """Raises BadFrame for one that is too long or cannot be stored."""
    value = value.strip()
    if len(value) > MAX_SYSTEM_PROMPT_CHARS or not is_storable(value):
        raise BadFrame(
            f"'system_prompt' has at most {MAX_SYSTEM_PROMPT_CHARS:,} characters, none of them NUL."
        )
    return value
