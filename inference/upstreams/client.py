"""How other servers are talked to: one kind of HTTP client, and a JSON endpoint behind it."""

import asyncio
import json
from typing import Any

import httpx2

from inference.upstreams import problems
from inference.upstreams.problems import Problem
from inference.upstreams.spec import host_of

MAX_ERROR_BYTES = 65_536
MAX_JSON_BYTES = 16 * 2**20
_CONNECT_TIMEOUT_S = 5.0
_SEND_TIMEOUT_S = 30.0


def new_client(timeout_s: float) -> httpx2.AsyncClient:
    """`timeout_s` is the longest silence that is waited through. Belongs to one event loop."""
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(timeout_s, connect=_CONNECT_TIMEOUT_S, write=_SEND_TIMEOUT_S),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        follow_redirects=False,  # a key goes nowhere but where it belongs
    )


async def beginning_of(response: httpx2.Response, max_bytes: int = MAX_ERROR_BYTES) -> bytes:
    """At most so much of a body, and no more of it is read."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) >= max_bytes:
            break
    return bytes(body[:max_bytes])


class JsonServer:
    """An endpoint of another server that takes and gives JSON. Lives on one event loop."""

    def __init__(self, url: str, *, api_key: str = "", timeout_s: float) -> None:
        """`timeout_s` is how long an answer may take as a whole."""
        self.host = host_of(url)
        self._url = url
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._client: httpx2.AsyncClient | None = None

    async def post(self, body: Any) -> Any:
        """What it answers. Raises EngineError, whose words quote no key."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(body)
        except Problem as problem:
            failed = problem.failed
        except (TimeoutError, httpx2.TimeoutException):
            failed = problems.down(self.host, f"did not answer in {self._timeout_s:g} s").failed
        except httpx2.HTTPError as error:
            failed = problems.down(self.host, f"cannot be reached ({type(error).__name__})").failed
        raise failed.as_error()

    async def _post(self, body: Any) -> Any:
        if self._client is None:
            self._client = new_client(self._timeout_s)
        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        async with self._client.stream("POST", self._url, headers=headers, json=body) as response:
            if response.status_code != 200:
                said = await beginning_of(response)
                retry_after = response.headers.get("retry-after")
                raise problems.of_response(
                    *(self.host, response.status_code, retry_after, said), self._api_key
                )
            text = await beginning_of(response, MAX_JSON_BYTES)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise problems.not_understood(self.host) from None

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()
