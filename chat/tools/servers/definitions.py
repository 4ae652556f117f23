"""What a server says of its tools, as it is kept: pinned when it is first heard."""

import json
import logging
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from chat.json_texts import MAX_DEPTH, depth_of
from chat.storable import storable_value
from chat.tool_models import Asking, ServerTool
from chat.tools.servers.spec import ToolServerSpec
from moderation.normalising import without_unseen

if TYPE_CHECKING:
    from mcp.types import Tool as Listed

logger = logging.getLogger(__name__)

MAX_TOOLS = 64  # of one server: each is read with every prompt
MAX_DESCRIPTION_CHARS = 4_000
MAX_SCHEMA_CHARS = 20_000
MAX_KEPT = 256  # rows of one server, with those that it names no more
_NAME_CHARS = 64  # as much as OpenAI's clients and other servers' models take
_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_MARK = re.compile(
    r"[<>\[\]|\x00-\x1f]"
)  # of a chat's own marks: templates write names as they are


_STRICTNESS = [Asking.NEVER, Asking.AFTER_OTHERS, Asking.ALWAYS]


def pin(spec: ToolServerSpec, listed: Iterable["Listed"]) -> None:
    """Keep what a server offers. What is new is taken, what is changed is proposed. In the system's
    scope."""
    found = _usable(spec, listed)
    with transaction.atomic():
        rows = {
            row.tool: row for row in ServerTool.objects.select_for_update().filter(server=spec.name)
        }
        new = {tool: definition for tool, definition in found.items() if tool not in rows}
        _take(spec, new, MAX_KEPT - len(rows))
        for tool in found.keys() & rows.keys():
            _compare(rows.pop(tool), found[tool])
        gone = [row.pk for row in rows.values() if row.is_listed]
        if gone:
            rows_gone = ServerTool.objects.filter(pk__in=gone)
            rows_gone.update(is_listed=False, updated_at=timezone.now())


def name_for(server: str, tool: str) -> str:
    """What models call it: letters, digits, _ and - alone, at most 64, and no other server's."""
    name = f"{server}__{_ODD.sub('_', tool)}"
    if len(name) <= _NAME_CHARS and _ODD.search(tool) is None:
        return name
    mark = sha256(tool.encode()).hexdigest()[:6]  # two odd names may look alike
    return f"{name[: _NAME_CHARS - 7]}_{mark}"


def asking_by(hints: dict[str, Any]) -> Asking:
    """Until an operator says otherwise. A tool that only reads may still tell the world what it is asked
    for, so once a document or a page could have put the question, a person has to agree."""
    if not hints.get("read_only"):
        return Asking.ALWAYS
    return Asking.NEVER if hints.get("open_world") is False else Asking.AFTER_OTHERS


def _usable(spec: ToolServerSpec, listed: Iterable["Listed"]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for tool in listed:
        if not spec.offers(tool.name) or tool.name in found:
            continue
        problem = _problem_with(tool)
        if len(found) >= MAX_TOOLS:
            problem = f"only {MAX_TOOLS} tools of a server are offered"
        if problem:
            logger.warning("tool %.80r of %s is left out: %s", tool.name, spec.name, problem)
            continue
        found[tool.name] = _definition(tool)
    return found


def _problem_with(tool: "Listed") -> str:
    if not tool.name or len(tool.name) > 200 or storable_value(tool.name) != tool.name:
        return "its name is no name"
    if len(tool.description or "") > MAX_DESCRIPTION_CHARS:
        return f"its description is longer than {MAX_DESCRIPTION_CHARS:,} characters"
    try:
        num_chars = len(json.dumps(tool.input_schema, allow_nan=False))
    except (ValueError, RecursionError):
        return "its schema holds a number that there is not"
    if num_chars > MAX_SCHEMA_CHARS:
        return f"its schema is longer than {MAX_SCHEMA_CHARS:,} characters"
    return _problem_with_schema(_shown(tool.input_schema))


def _problem_with_schema(schema: dict[str, Any]) -> str:
    """Chat templates go through it as it usually is, and would fail each answer of a chat that has the
    server on."""
    if depth_of(schema) > MAX_DEPTH:
        return f"its schema is deeper than {MAX_DEPTH}"
    fields, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(fields, dict) or not all(isinstance(one, dict) for one in fields.values()):
        return "its schema has no proper 'properties'"
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        return "its schema has no proper 'required'"
    if any(_MARK.search(name) for name in _names_in(schema)):
        return "its schema has a name with marks in it"
    return ""


def _names_in(value: Any) -> Iterable[str]:
    match value:
        case list():
            for one in value:
                yield from _names_in(one)
        case dict():
            for name, one in value.items():
                yield name
                yield from _names_in(one)


def _shown(schema: dict[str, Any]) -> dict[str, Any]:
    """As models and operators are shown it: without patterns of names, and what nobody sees."""
    shown: dict[str, Any] = _legible(schema)
    fields = shown.get("properties")
    if isinstance(fields, dict):  # "true" allows anything, as an empty one does
        shown["properties"] = {k: {} if v is True else v for k, v in fields.items()}
    return shown


def _legible(value: Any) -> Any:
    match value:
        case list():
            return [_legible(one) for one in value]
        case dict():
            return {
                name: without_unseen(one)
                if isinstance(one, str) and name in ("title", "description", "$comment")
                else _legible(one)
                for name, one in value.items()
                if name != "patternProperties"
            }
    return value


def _definition(tool: "Listed") -> dict[str, Any]:
    hints = tool.annotations
    title = tool.title or (hints.title if hints else None) or ""
    value: dict[str, Any] = storable_value(
        {
            "title": without_unseen(title)[:80],
            "description": without_unseen(tool.description or ""),
            "parameters": _shown(tool.input_schema),
            "hints": {
                "read_only": bool(hints and hints.read_only_hint),
                "open_world": not (hints and hints.open_world_hint is False),
            },
        }
    )
    return value


def _take(spec: ToolServerSpec, new: dict[str, dict[str, Any]], most: int) -> None:
    """A server that makes up names without an end fills no table, and one that spells a name as that of
    another tool is written gets none."""
    names = {tool: name_for(spec.name, tool) for tool in new}
    taken = set(ServerTool.objects.filter(name__in=names.values()).values_list("name", flat=True))
    for tool, definition in new.items():
        if names[tool] in taken or most <= 0:
            problem = "there are too many" if most <= 0 else "its name is another's"
            logger.warning("tool %.80r of %s is left out: %s", tool, spec.name, problem)
            continue
        taken.add(names[tool])
        most -= 1
        ServerTool.objects.create(
            server=spec.name,
            tool=tool,
            name=names[tool],
            definition=definition,
            asks=asking_by(definition["hints"]),
        )


def _compare(row: ServerTool, definition: dict[str, Any]) -> None:
    proposed = None if definition == row.definition else definition
    if (row.proposed, row.is_listed) == (proposed, True):
        return
    if proposed is not None and row.proposed != proposed:
        logger.warning("tool %s is changed by its server, and waits for an operator", row.name)
    row.proposed, row.is_listed = proposed, True
    row.save(update_fields=["proposed", "is_listed", "updated_at"])


def accept(row: ServerTool) -> None:
    """The changed definition is the one from here on. A tool that says no more that it only reads asks
    as a new one would; that it says so now loosens nothing."""
    if row.proposed is not None:
        before, after = asking_by(row.definition["hints"]), asking_by(row.proposed["hints"])
        if _STRICTNESS.index(after) > _STRICTNESS.index(before):
            row.asks = max(after, Asking(row.asks), key=_STRICTNESS.index)
        row.definition, row.proposed = row.proposed, None
        row.save(update_fields=["definition", "proposed", "asks", "updated_at"])
