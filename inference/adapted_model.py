"""A LoRA adapter as the engine serves it: a model of its own name, in the workers of its base."""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path

from inference.adapter_files import read_adapter
from inference.catalog import ModelSpec, ModelState
from inference.chat_template import read_chat_template
from inference.encode_messages import Encoded, EncodeRequest
from inference.encoder_revision import read_encoder_revision
from inference.host import ModelHost
from inference.messages import AdapterInfo, GenerateRequest, Update


class AdaptedModel:
    """Loaded, put to sleep and woken with its base, whose queue, workers and cache it shares."""

    def __init__(self, spec: ModelSpec, host: ModelHost, path: Path) -> None:
        self.spec = spec
        self.host = host
        self.path = path

    def read_chat_template(self) -> str:
        """Its own, where it was trained with another one than its base has; else ""."""
        own = read_chat_template(self.path)
        return "" if own == read_chat_template(self.host.path) else own

    @property
    def sees_images(self) -> bool:
        """As its base does."""
        return self.host.sees_images

    @property
    def info(self) -> AdapterInfo | None:
        """What the base's worker says of it; None until there was one."""
        known = self.host.info.adapters if self.host.info else ()
        return next((info for info in known if info.name == self.spec.name), None)

    @property
    def revision(self) -> str:
        """Of its base, until both are loaded."""
        info = self.info
        return self.host.revision if info is None else _joined(self.host.revision, info.revision)

    @property
    def max_context_tokens(self) -> int | None:
        """As its base has."""
        return self.host.max_context_tokens

    def as_state(self, *, is_default: bool) -> ModelState:
        """As its base stands, unless the adapter itself cannot be served."""
        state = replace(self.host.as_state(is_default=is_default), spec=self.spec)
        if (info := self.info) is None:
            return state
        if info.problem and state.state == "ready":
            state = replace(state, state="failed", detail=info.problem)
        return replace(state, revision=self.revision)

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Update, None]:
        return self.host.generate(replace(request, adapter=self.spec.name))

    async def encode(self, request: EncodeRequest) -> Encoded:
        return await self.host.encode(replace(request, adapter=self.spec.name))

    def read_revision(self) -> str:
        """Of an embedding model with this adapter, by the files: as `as_state` tells it once they are
        loaded. Raises ModelRefused."""
        return _joined(read_encoder_revision(self.host.path), read_adapter(self.path).revision)

    async def count_cached(
        self, prompts: Sequence[Sequence[int]], cache_salt: str, timeout_s: float
    ) -> tuple[int, ...] | None:
        return await self.host.count_cached(prompts, cache_salt, timeout_s, self.spec.name)

    def abort(self, request_id: str) -> None:
        self.host.abort(request_id)


def _joined(base: str, adapter: str) -> str:
    """A revision that changes with either's files."""
    return hashlib.sha256(f"{base} {adapter}".encode()).hexdigest()[:16]
