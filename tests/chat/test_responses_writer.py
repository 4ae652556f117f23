"""Searches in files among a response's items: their ends, and what is cited."""

import json
from typing import Any

import pytest

from chat.events import Delta, Event, Failed, Finished, Refused, Searched, ToolCall
from chat.responses_schemas import FileResultIn, ResponseIn
from chat.responses_writer import ResponseWriter
from tests.openai_description import check, needs_description

LAMP = {"type": "function", "name": "lamp", "parameters": {"type": "object"}}
STORE = {"type": "file_search", "vector_store_ids": ["vs_1"]}
SEARCH = ToolCall("c1", "search", '{"query": "sea"}')
PASSAGE = {
    "file_id": "file-1",
    "filename": "sea.txt",
    "score": 0.5,
    "attributes": {},
    "text": "Salt.",
}
FOUND = Searched("c1", "sea", {2: PASSAGE})


def a_writer(*shown: FileResultIn, **fields: Any) -> ResponseWriter:
    body = {"model": "m", "input": "Tell me.", "tools": [LAMP, STORE], **fields}
    data = ResponseIn.model_validate(body)
    return ResponseWriter(data, "resp_1", None, search_name="search", passages=shown)


def told(writer: ResponseWriter, *events: Event) -> list[dict[str, Any]]:
    frames = [*writer.begin(), *(frame for event in events for frame in writer.hear(event))]
    return [json.loads(frame.split("data: ", 1)[1]) for frame in frames]


@needs_description
@pytest.mark.parametrize(
    ("end", "status"),
    [
        (Finished("content_filter"), "incomplete"),
        (Failed("worker_died", "gone"), "failed"),
        (Refused("blocked", "gone", "output"), "failed"),
    ],
)
def test_a_search_that_is_under_way_at_the_end_has_ended(end: Event, status: str) -> None:
    writer = a_writer()
    frames = told(writer, SEARCH, end)
    for frame in frames:
        check(frame, "ResponseStreamEvent")
    assert [one["status"] for one in writer.output] == [status]
    assert [frame["type"] for frame in frames].count("response.output_item.done") == 1


def test_a_call_of_nobodys_tool_is_no_item() -> None:
    writer = a_writer()
    told(writer, Delta("So.", 0), ToolCall("c2", "oven", "{}"), ToolCall("c3", "lamp", "{}"))
    assert [one["type"] for one in writer.output] == ["message", "function_call"]


def test_what_the_caller_has_shown_is_cited_as_well() -> None:
    shown = FileResultIn(file_id="file-9", filename="lake.txt", text="Deep.")
    writer = a_writer(shown, FileResultIn(text="Nobody's."))
    told(writer, SEARCH, FOUND, Delta("Deep [1], salt [2], none [3].", 0), Finished("stop"))
    cited = writer.output[1]["content"][0]["annotations"]
    assert [one["file_id"] for one in cited] == ["file-9", "file-1"]


def test_a_list_of_numbers_in_json_cites_nothing() -> None:
    form = {"type": "json_object"}
    writer = a_writer(text={"format": form})
    text = '{"says": "A \\"[2]\\" is [2].", "sizes": [2], "more": "[2'
    told(writer, SEARCH, FOUND, Delta(text, 0), Finished("length"))
    marks = writer.output[1]["content"][0]["annotations"]
    assert [one["index"] for one in marks] == [text.index("[2]"), text.index("[2].")]
