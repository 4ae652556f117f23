"""/api for custom instructions, assistants, saved prompts, and how a chat is set up."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from chat import access, actions, history, notices, personal, values
from chat.db import in_db
from chat.models import HistoryStrategy, Message
from chat.parameters import Parameters
from chat.setup import MAX_SYSTEM_PROMPT_CHARS, ServerNames
from chat.sources import MAX_PICKED
from chat.strict import Strict, text_of

router = Router()

MAX_ABOUT_CHARS = 2_000
MAX_PROMPT_CHARS = 20_000
MAX_STARTERS = 6
MAX_PINNED = 50
PROMPT_NAME = r"^[a-z0-9][a-z0-9_-]{0,39}$"


class PersonalisationIn(Strict):
    is_on: bool | None = None
    about_you: text_of(MAX_ABOUT_CHARS) | None = None  # type: ignore[valid-type]
    how_to_answer: text_of(MAX_ABOUT_CHARS) | None = None  # type: ignore[valid-type]
    history_strategy: HistoryStrategy | None = None
    caches_answers: bool | None = None
    uses_memories: bool | None = None
    default_model: text_of(200) | None = None  # type: ignore[valid-type]
    pinned_models: list[text_of(200, 1)] | None = Field(None, max_length=MAX_PINNED)  # type: ignore[valid-type]
    version: int | None = None


class AssistantIn(Strict):
    name: text_of(80, 1)  # type: ignore[valid-type]
    description: text_of(200) = ""  # type: ignore[valid-type]
    model: text_of(200) = ""  # type: ignore[valid-type]
    system_prompt: text_of(MAX_SYSTEM_PROMPT_CHARS) = ""  # type: ignore[valid-type]
    parameters: Parameters = Field(default_factory=Parameters.model_construct)
    history_strategy: HistoryStrategy | None = None
    starters: list[text_of(200, 1)] = Field([], max_length=MAX_STARTERS)  # type: ignore[valid-type]
    collections: list[UUID] = Field([], max_length=MAX_PICKED)
    tool_servers: ServerNames = []
    is_shared: bool = False


class AssistantChange(AssistantIn):
    name: text_of(80, 1) | None = None  # type: ignore[valid-type]
    version: int | None = None


class PromptIn(Strict):
    name: str = Field(pattern=PROMPT_NAME)
    text: text_of(MAX_PROMPT_CHARS, 1)  # type: ignore[valid-type]


class PromptChange(Strict):
    name: str | None = Field(None, pattern=PROMPT_NAME)
    text: text_of(MAX_PROMPT_CHARS, 1) | None = None  # type: ignore[valid-type]
    version: int | None = None


class SetupChange(Strict):
    system_prompt: text_of(MAX_SYSTEM_PROMPT_CHARS) | None = None  # type: ignore[valid-type]
    parameters: Parameters | None = None
    history_strategy: HistoryStrategy | None = None
    tool_servers: ServerNames | None = None
    version: int | None = None


# --- custom instructions --------------------------------------------------------------------------


@router.get("/personalisation")
async def show_personalisation(request: HttpRequest) -> dict[str, Any]:
    """Your custom instructions. `version` is 0 until something was saved."""
    return await in_db(lambda: _personalisation(personal.personalisation_of(request.user)))()


@router.patch("/personalisation")
async def change_personalisation(request: HttpRequest, data: PersonalisationIn) -> dict[str, Any]:
    """Change them, for chats that start from now on. `default_model` is the one that new chats begin
    with, `pinned_models` stand first where one is chosen; to choose them alone makes no new `version`.
    """
    row = await in_db(personal.save_personalisation)(request.user, data.version, **_changes(data))
    return _personalisation(row)


# --- assistants -----------------------------------------------------------------------------------


@router.get("/assistants")
async def list_assistants(request: HttpRequest) -> dict[str, Any]:
    """Yours and those that everybody may use, by name."""
    user = request.user
    return {"items": await in_db(lambda: assistant_values(personal.assistants_for(user), user))()}


@router.post("/assistants", response={201: dict})
async def create_assistant(request: HttpRequest, data: AssistantIn) -> tuple[int, dict[str, Any]]:
    user, fields = request.user, _assistant_fields(data)
    return 201, await in_db(
        lambda: assistant_value(personal.create_assistant(user, **fields), user)
    )()


@router.get("/assistants/{assistant_id}")
async def show_assistant(request: HttpRequest, assistant_id: str) -> dict[str, Any]:
    user = request.user
    return await in_db(lambda: assistant_value(personal.assistant_for(user, assistant_id), user))()


@router.patch("/assistants/{assistant_id}")
async def change_assistant(
    request: HttpRequest, assistant_id: str, data: AssistantChange
) -> dict[str, Any]:
    """Change one of yours; chats that were started with it keep what they have."""
    user, version, changes = request.user, data.version, _assistant_fields(data)

    def change() -> values.Value:
        row = personal.change_assistant(user, assistant_id, version, **changes)
        return assistant_value(row, user)

    return await in_db(change)()


@router.delete("/assistants/{assistant_id}", response={204: None})
async def delete_assistant(request: HttpRequest, assistant_id: str) -> tuple[int, None]:
    """Delete one of yours; chats that were started with it go on."""
    await in_db(personal.delete_assistant)(request.user, assistant_id)
    return 204, None


# --- saved prompts --------------------------------------------------------------------------------


@router.get("/prompts")
async def list_prompts(request: HttpRequest) -> dict[str, Any]:
    rows = await in_db(lambda: list(personal.prompts_of(request.user)))()
    return {"items": [prompt_value(row) for row in rows]}


@router.post("/prompts", response={201: dict})
async def create_prompt(request: HttpRequest, data: PromptIn) -> tuple[int, dict[str, Any]]:
    row = await in_db(personal.create_prompt)(request.user, **_changes(data))
    return 201, prompt_value(row)


@router.patch("/prompts/{prompt_id}")
async def change_prompt(request: HttpRequest, prompt_id: str, data: PromptChange) -> dict[str, Any]:
    row = await in_db(personal.change_prompt)(
        request.user, prompt_id, data.version, **_changes(data)
    )
    return prompt_value(row)


@router.delete("/prompts/{prompt_id}", response={204: None})
async def delete_prompt(request: HttpRequest, prompt_id: str) -> tuple[int, None]:
    await in_db(personal.delete_prompt)(request.user, prompt_id)
    return 204, None


# --- how a chat is set up -------------------------------------------------------------------------


@router.get("/conversations/{conversation_id}/setup")
async def show_setup(request: HttpRequest, conversation_id: str) -> dict[str, Any]:
    """System prompt, instructions, parameters, strategy and tool servers of a chat."""
    row = await in_db(access.conversation_for)(request.user, conversation_id)
    return setup_value(row)


@router.patch("/conversations/{conversation_id}/setup")
async def change_setup(
    request: HttpRequest, conversation_id: str, data: SetupChange
) -> dict[str, Any]:
    """Change it from the next answer on; `version` is that of the conversation that you saw."""
    row = await in_db(actions.change_setup)(
        request.user, conversation_id, data.version, **_changes(data)
    )
    await notices.conversation_changed(request.user.pk, row.pk)
    return setup_value(row)


@router.put("/messages/{message_id}/pin", response={204: None})
async def pin_message(request: HttpRequest, message_id: str) -> tuple[int, None]:
    """Keep a message in the model's view, however long the chat gets."""
    await _pin(request.user, message_id, is_pinned=True)
    return 204, None


@router.delete("/messages/{message_id}/pin", response={204: None})
async def unpin_message(request: HttpRequest, message_id: str) -> tuple[int, None]:
    await _pin(request.user, message_id, is_pinned=False)
    return 204, None


@router.get("/summaries/{summary_id}")
async def show_summary(request: HttpRequest, summary_id: str) -> dict[str, Any]:
    """What stands in for messages that a model is not shown."""
    row = await in_db(history.summary_for)(request.user, summary_id)
    return {"id": str(row.pk), "text": row.text, "model": row.model}


async def _pin(user: Any, message_id: str, *, is_pinned: bool) -> None:
    row = await in_db(access.message_for)(user, message_id)
    await in_db(lambda: Message.objects.filter(pk=row.pk).update(is_pinned=is_pinned))()
    await notices.conversation_changed(user.pk, row.conversation_id)


# --- values ---------------------------------------------------------------------------------------


def _changes(data: Schema) -> dict[str, Any]:
    """What the body has set, by field name."""
    names = data.model_fields_set - {"version"}
    found = {name: getattr(data, name) for name in names if getattr(data, name) is not None}
    return {
        name: value.as_values() if isinstance(value, Parameters) else value
        for name, value in found.items()
    }


def _assistant_fields(data: AssistantIn) -> dict[str, Any]:
    fields = _changes(data)
    if "history_strategy" in data.model_fields_set:
        fields["history_strategy"] = data.history_strategy or ""
    return fields


def _personalisation(row: Any) -> dict[str, Any]:
    names = (
        *("is_on", "about_you", "how_to_answer", "history_strategy"),
        *("caches_answers", "uses_memories", "default_model", "pinned_models", "version"),
    )
    return {name: getattr(row, name) for name in names}


def assistant_values(rows: Iterable[Any], user: Any) -> list[values.Value]:
    """`is_own` is whether the user may change it; `collections` are those that the user may read. Asks
    the database."""
    shown = list(rows)
    names = personal.collections_of(shown)
    return [_assistant_value(row, user, names) for row in shown]


def assistant_value(row: Any, user: Any) -> values.Value:
    return assistant_values([row], user)[0]


def _assistant_value(row: Any, user: Any, collections: dict[Any, str]) -> values.Value:
    names = ("name", "description", "model", "system_prompt", "parameters", "starters")
    others = ("tool_servers", "is_shared", "version")
    value = {name: getattr(row, name) for name in (*names, *others)}
    own = {"id": str(row.pk), "is_own": row.owner_id == user.pk}
    picked = [
        {"id": str(id_), "name": collections[id_]} for id_ in row.collections if id_ in collections
    ]
    return value | own | {"history_strategy": row.history_strategy or None, "collections": picked}


def prompt_value(row: Any) -> values.Value:
    return {"id": str(row.pk), "name": row.name, "text": row.text, "version": row.version}


def setup_value(row: Any) -> values.Value:
    names = ("system_prompt", "instructions", "parameters", "history_strategy", "tool_servers")
    return {name: getattr(row, name) for name in (*names, "memory", "assistant", "version")}
