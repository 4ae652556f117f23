"""OpenAI's client at work with files and batches."""

import json
from typing import Any

import openai

from tests.openai_description import check
from tests.sites import wait_until

ENDED = ("completed", "failed", "cancelled", "expired")
CHAT = "/v1/chat/completions"


def chat_body(text: str = "Hello", **more: Any) -> dict[str, Any]:
    body = {"model": "endless", "messages": [{"role": "user", "content": text}], "max_tokens": 3}
    return body | more


def line(custom_id: Any, body: Any = None, url: str = CHAT, **more: Any) -> dict[str, Any]:
    made = {"custom_id": custom_id, "method": "POST", "url": url, "body": body or chat_body()}
    return made | more


def jsonl(lines: list[Any]) -> bytes:
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines).encode()


def upload(client: openai.OpenAI, lines: list[Any] | bytes, purpose: Any = "batch") -> str:
    content = lines if isinstance(lines, bytes) else jsonl(lines)
    return client.files.create(file=("requests.jsonl", content), purpose=purpose).id


def begin(client: openai.OpenAI, lines: list[Any], endpoint: Any = CHAT, **more: Any) -> Any:
    return client.batches.create(
        input_file_id=upload(client, lines), endpoint=endpoint, completion_window="24h", **more
    )


def ended(client: openai.OpenAI, batch_id: str, timeout_s: float = 90.0) -> Any:
    """The batch at its end. On the way its counts never go back, and it is as published."""
    before = 0

    def look() -> Any:
        nonlocal before
        batch = client.batches.retrieve(batch_id)
        check(batch.to_dict(), "Batch")
        assert batch.request_counts is not None
        num_done = batch.request_counts.completed + batch.request_counts.failed
        assert num_done >= before
        before = num_done
        return batch if batch.status in ENDED else None

    return wait_until(look, timeout_s=timeout_s, what="the end of the batch")


def results(client: openai.OpenAI, file_id: str | None) -> dict[str, Any]:
    """The lines of a file that a batch has left, by their custom ids; each is there once."""
    if file_id is None:
        return {}
    lines = [json.loads(text) for text in client.files.content(file_id).text.splitlines()]
    found = {one["custom_id"]: one for one in lines}
    assert len(found) == len(lines)
    return found
