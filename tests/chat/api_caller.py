"""A raw caller of /v1, who sees what OpenAI's client hides."""

import json
from typing import Any, Self

import httpx2

from tests.sites import Site, email_of

Frame = tuple[str, Any]
"""A server-sent event's name, "" for none, and its data: JSON, or the text [DONE]."""


class Caller:
    def __init__(self, site: Site, key: str) -> None:
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.url = f"{site.url}/v1"

    @classmethod
    def signed_up(cls, site: Site, name: str = "developer") -> Self:
        """With a key of somebody who has just signed up."""
        site.sign_up(name).close()
        return cls(site, site.create_api_key(email_of(name)))

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        text = body if isinstance(body, str) else json.dumps(body)
        with httpx2.Client(headers=self.headers | headers, timeout=60) as visitor:
            return visitor.post(f"{self.url}{path}", content=text)

    def get(self, path: str) -> httpx2.Response:
        return httpx2.get(f"{self.url}{path}", headers=self.headers, timeout=60)

    def delete(self, path: str) -> httpx2.Response:
        return httpx2.delete(f"{self.url}{path}", headers=self.headers, timeout=60)

    def stream(self, path: str, body: dict[str, Any]) -> list[Frame]:
        response = self.post(path, {**body, "stream": True})
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "text/event-stream"
        return [_frame(block) for block in response.text.split("\n\n") if block]


def _frame(block: str) -> Frame:
    fields = dict(line.split(": ", 1) for line in block.split("\n"))
    data = fields["data"]
    return fields.get("event", ""), data if data == "[DONE]" else json.loads(data)
