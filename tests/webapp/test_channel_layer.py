"""Messages arrive at once, also on groups that are joined while it waits."""

import asyncio
from time import monotonic
from typing import Any

import pytest
from channels.layers import channel_layers

from webapp.channel_layer import ChannelLayer

pytestmark = pytest.mark.usefixtures("servers")


@pytest.fixture
def layer() -> Any:
    found = channel_layers.make_backend("default")
    assert isinstance(found, ChannelLayer)
    return found


async def test_what_is_sent_is_heard_at_once(layer: Any) -> None:
    first = await layer.new_channel()
    await layer.group_add("us", first)
    for number in range(3):
        await asyncio.sleep(0.05)  # it waits by now
        began_s = monotonic()
        await layer.group_send("us", {"type": "news", "number": number})
        message = await asyncio.wait_for(layer.receive(first), 5)
        assert message["number"] == number
        assert monotonic() - began_s < 2
    second = await layer.new_channel()  # while it waits
    await layer.group_add("others", second)
    await layer.group_send("others", {"type": "news", "number": 4})
    assert (await asyncio.wait_for(layer.receive(second), 5))["number"] == 4
    await layer.group_discard("us", first)
    await layer.group_send("us", {"type": "news", "number": 5})
    await layer.send(first, {"type": "news", "number": 6})
    assert (await asyncio.wait_for(layer.receive(first), 5))["number"] == 6
    await layer.flush()


async def test_it_hears_again_what_is_sent_after_nobody_was_there(layer: Any) -> None:
    for _ in range(2):
        channel = await layer.new_channel()
        receiving = asyncio.create_task(layer.receive(channel))
        await asyncio.sleep(0.05)
        receiving.cancel()  # and is unsubscribed from
        await asyncio.gather(receiving, return_exceptions=True)
        await asyncio.sleep(0.05)
    channel = await layer.new_channel()
    await layer.send(channel, {"type": "news"})
    assert await asyncio.wait_for(layer.receive(channel), 5) == {"type": "news"}
    await layer.flush()
