"""What a socket's message goes through before it is handled."""

from typing import Any

import channels.consumer
import pytest

from chat.consumers import ChatConsumer


@pytest.fixture
def consumer() -> ChatConsumer:
    consumer = ChatConsumer()
    consumer.sent = []

    async def send(message: dict[str, Any]) -> None:
        consumer.sent.append(message)

    consumer.base_send = send
    return consumer


async def test_no_message_waits_for_a_thread(
    consumer: ChatConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def close_old_connections() -> None:
        raise AssertionError("a thread was asked")

    monkeypatch.setattr(channels.consumer, "aclose_old_connections", close_old_connections)
    await consumer.dispatch({"type": "websocket.receive", "text": '{"type": "ping"}'})
    assert consumer.sent == [{"type": "websocket.send", "text": '{"type":"pong"}'}]


async def test_a_message_that_nobody_handles_is_an_error(consumer: ChatConsumer) -> None:
    with pytest.raises(ValueError, match=r"nobody\.knows"):
        await consumer.dispatch({"type": "nobody.knows"})
