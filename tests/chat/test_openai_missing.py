"""What is not there says so, to OpenAI's client too."""

import openai
import pytest

from tests.chat.api_caller import Caller
from tests.sites import Site

PATHS = [
    "/images/variations",
    "/uploads",
    "/uploads/upload_1/parts",
    "/conversations",
    "/assistants",
    "/threads/thread_1/runs",
    "/fine_tuning/jobs",
    "/realtime/client_secrets",
    "/containers",
    "/videos",
    "/chat/completions/chatcmpl-1",
    "/responses/compact",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_501_says_what_is_missing(caller: Caller, path: str) -> None:
    for response in (caller.post(path, {"any": "thing"}), caller.get(path), caller.delete(path)):
        assert response.status_code == 501
        error = response.json()["error"]
        assert error["code"] == "not_implemented"
        assert error["message"].endswith(".")
        assert "param" in error
        assert response.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("path", PATHS)
def test_it_says_so_to_those_with_a_key_only(chat_site: Site, path: str) -> None:
    with chat_site.visitor() as visitor:
        assert visitor.post(f"/v1{path}", json={}).status_code == 401


def test_the_client_understands(client: openai.OpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as caught:
        client.conversations.create()
    assert caught.value.status_code == 501
    assert caught.value.code == "not_implemented"
