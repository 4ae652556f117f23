"""The channel layer: channels_redis, which waits for messages instead of looking for them.

The stock layer wakes ten times a second to look whether something has come, in every process and all
day. What has come wakes it anyway.
"""

import asyncio
from typing import Any

from channels_redis.pubsub import (
    RedisPubSubChannelLayer,
    RedisPubSubLoopLayer,
    RedisSingleShardConnection,
    logger,
)
from channels_redis.utils import _wrap_close, decode_hosts

WAIT_S = 10.0
PAUSE_S = 1.0  # after an error, as the stock layer does


class _Shard(RedisSingleShardConnection):  # type: ignore[misc]
    """Where nothing is subscribed to, there is nothing to be waited for but that."""

    def __init__(self, host: Any, channel_layer: Any) -> None:
        super().__init__(host, channel_layer)
        self._has_channels = asyncio.Event()

    async def subscribe(self, channel: str) -> None:
        await super().subscribe(channel)
        self._has_channels.set()

    async def _do_receiving(self) -> None:
        while True:
            try:
                if self._pubsub is None or not self._pubsub.subscribed:
                    self._has_channels.clear()
                    await self._has_channels.wait()
                    continue
                message = await self._pubsub.get_message(
                    ignore_subscribe_messages=True, timeout=WAIT_S
                )
                self._receive_message(message)
            except Exception:  # Redis is away, most likely
                logger.exception("Unexpected exception in receive task")
                await asyncio.sleep(PAUSE_S)


class _LoopLayer(RedisPubSubLoopLayer):  # type: ignore[misc]
    def __init__(self, hosts: Any = None, **options: Any) -> None:
        super().__init__(hosts=hosts, **options)
        self._shards = [_Shard(host, self) for host in decode_hosts(hosts)]


class ChannelLayer(RedisPubSubChannelLayer):  # type: ignore[misc]
    """settings.CHANNEL_LAYERS names it."""

    def _get_layer(self) -> _LoopLayer:
        loop = asyncio.get_running_loop()
        if loop not in self._layers:
            self._layers[loop] = _LoopLayer(*self._args, **self._kwargs, channel_layer=self)
            _wrap_close(self, loop)
        layer: _LoopLayer = self._layers[loop]
        return layer
