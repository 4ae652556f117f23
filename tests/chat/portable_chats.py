"""Random trees of messages for properties of export and import."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from chat.models import Conversation, Message
from chat.parts import text_of
from chat.transfer.portable import portable_fields

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
moments = st.integers(10**15, 2 * 10**15).map(  # microseconds
    lambda number: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=number)
)
json_values = st.none() | st.dictionaries(words, st.integers() | words | st.booleans(), max_size=3)
parts = st.lists(
    st.one_of(
        st.fixed_dictionaries({"type": st.just("text"), "text": words}),
        st.fixed_dictionaries({"type": st.just("reasoning"), "text": words}),
        st.fixed_dictionaries(
            {"type": st.just("tool_call"), "id": words, "name": words, "arguments": words}
        ),
        st.fixed_dictionaries(
            {"type": st.just("tool_result"), "id": words, "content": words,
             "is_error": st.booleans()}
        ),
    ),
    max_size=4,
)  # fmt: skip
ids = st.uuids().map(str)
picked = st.lists(st.fixed_dictionaries({"id": ids, "name": words}), max_size=2)
excerpts = st.fixed_dictionaries(
    {"number": st.integers(1, 99), "document": ids, "version": ids, "collection": ids, "name": words,
     "start": st.integers(0, 9), "end": st.integers(9, 99), "first_page": st.just(1),
     "last_page": st.just(1), "page_label": words, "context": st.just(""),
     "chunks": st.lists(st.integers(1, 99), max_size=2)}
)  # fmt: skip
_GIVEN = {
    "sources": st.none() | st.fixed_dictionaries({"collections": picked, "documents": picked}),
    "found": st.none()
    | st.fixed_dictionaries(
        {
            "query": words,
            "excerpts": st.lists(excerpts, max_size=2),
            "is_whole": st.booleans(),
        }
    ),
    # It names another message, by an id that is new after the import.
    "left_out": st.none(),
    "error": st.none() | st.fixed_dictionaries({}, optional={"code": words, "message": words}),
    "from_cache": st.none()
    | st.fixed_dictionaries(
        {
            "asked_at": st.just("2026-11-24T20:00:00+00:00"),
            "question": words,
            "similarity": st.floats(0, 1),
        }
    ),
    "usage": st.none() | st.fixed_dictionaries({"prompt_tokens": st.integers(0, 99)}),
    "timings": st.none() | st.fixed_dictionaries({"total_ms": st.floats(0, 9e9)}),
    "parts": parts,
    "status": st.sampled_from(["complete", "stopped", "refused", "failed"]),
    "created_at": moments,
    "updated_at": moments,
    "parameters": st.fixed_dictionaries(
        {}, optional={"temperature": st.floats(0, 2), "top_k": st.integers(0, 1000)}
    ),
    "assistant": st.none()
    | st.fixed_dictionaries({"id": words, "name": words, "version": st.integers(1, 99)}),
    "feedback": st.none()
    | st.fixed_dictionaries(
        {
            "rating": st.just("bad"),
            "reasons": st.sampled_from([[], ["other"], ["incorrect", "too_long"]]),
            "comment": words.map(str.strip),
            "at": st.just("2026-11-24T20:00:00+00:00"),
        }
    ),
    "tags": st.lists(st.text("abc", min_size=1, max_size=9), max_size=3, unique=True),
}


def field_values(draw: Callable[[Any], Any], model: Any) -> dict[str, Any]:
    """A value for every field that travels, also of those that nobody thought of here."""
    result = {}
    for name, column in portable_fields(model).items():
        kind = column.get_internal_type()
        if name in _GIVEN:
            strategy = _GIVEN[name]
        elif column.choices:
            strategy = st.sampled_from([value for value, _ in column.flatchoices])
        elif kind == "JSONField":
            strategy = json_values
        elif kind == "BooleanField":
            strategy = st.booleans()
        elif kind == "DateTimeField":
            strategy = st.none() | moments
        elif "Integer" in kind:
            strategy = st.integers(1, 30)
        elif kind in ("CharField", "TextField"):
            strategy = words.map(lambda text: text[:30])
        else:
            raise NotImplementedError(f"say how {name} is drawn")
        result[name] = draw(strategy)
    return result


@st.composite
def trees(draw: Callable[[Any], Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Fields of a conversation and of its messages; `parent` is the place of an earlier one."""
    messages = []
    for place in range(draw(st.integers(1, 8))):
        parent = draw(st.none() | st.integers(0, place - 1)) if place else None
        messages.append({**field_values(draw, Message), "parent": parent})
    return field_values(draw, Conversation), messages


def save(owner: Any, tree: tuple[dict[str, Any], list[dict[str, Any]]]) -> Conversation:
    fields, messages = tree
    conversation = Conversation.objects.create(owner=owner, **fields)
    rows: list[Message] = []
    for given in messages:
        values = dict(given)
        parent = values.pop("parent")
        rows.append(
            Message.objects.create(
                conversation=conversation,
                parent=None if parent is None else rows[parent],
                text=text_of(values["parts"]),
                **values,
            )
        )
    Conversation.objects.filter(pk=conversation.pk).update(updated_at=fields["updated_at"])
    conversation.refresh_from_db()
    return conversation
