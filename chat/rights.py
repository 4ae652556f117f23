"""What somebody may do: the one place that decides it, for page, socket, REST and task alike.

A user has what the tier gives and what groups add; an API key takes away what it does not name.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from django.conf import settings
from django.utils import timezone

from chat.api_errors import ApiError
from chat.engine import engine
from chat.tools import BUILT_IN
from chat.tools.servers.offering import names_of
from chat.tools.servers.spec import IMAGES, ToolServerSpec
from chat.windows import Window
from inference import ModelKind, ModelState, Priority, UnknownModel

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent, by answers that begin while it is not used up. None: without end."""

    tokens_per_day: int | None = None
    tokens_per_month: int | None = None
    cost_per_month: Any = None
    key_tokens_per_day: int | None = None

    @property
    def is_endless(self) -> bool:
        return self == Budget()


@dataclass(frozen=True, slots=True)
class Rights:
    """Of a user, whose tier comes along, by way of a browser or of an API key.

    With `is_background` nobody waits for what is asked: it goes behind everybody's. Of the places that
    the tier has for answers at the same time it takes none under /v1, and in chats not the last one.
    """

    user: Any
    api_key: Any = None
    is_background: bool = False

    @property
    def api_key_id(self) -> int | None:
        return self.api_key.pk if self.api_key else None

    @property
    def is_narrowed(self) -> bool:
        """Whether an API key allows less than its user may."""
        if self.api_key is None:
            return False
        limits = (self.api_key.requests_per_minute, self.api_key.tokens_per_day)
        return "*" not in self.api_key.model_names or limits != (None, None)

    @property
    def key_name(self) -> tuple[int, str] | None:
        """The key's id and its prefix."""
        return (self.api_key.pk, self.api_key.prefix) if self.api_key else None

    @property
    def priority(self) -> Priority:
        """The engine's class for what a program asks."""
        if self.is_background:
            return "background"
        priority: Priority = self.user.tier.api_priority
        return priority

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(BUILT_IN) if "tools" in self.user.tier.features else ()

    def tool_servers(self, among: Container[str] | None = None) -> list[ToolServerSpec]:
        """Those whose tools may be called; `among` these alone. Asks the database where some are for
        groups alone."""
        if "tools" not in self.user.tier.features:
            return []
        specs = (s for s in settings.TOOL_SERVERS if among is None or s.name in among)
        return [spec for spec in specs if self._is_for_me(spec)]

    def tools_of(self, servers: Iterable[str]) -> tuple[str, ...]:
        """Names of the tools that are offered by those of the servers that may be used."""
        wanted = set(servers)
        if not wanted:
            return ()
        return names_of(spec.name for spec in self.tool_servers(wanted))

    def tools_with(self, servers: Iterable[str]) -> tuple[str, ...]:
        """Names of all tools of a chat that has picked these servers."""
        return (*self.tools, *self.tools_of(servers))

    def _is_for_me(self, spec: ToolServerSpec) -> bool:
        if spec is IMAGES and not self.may_draw:
            return False
        if not spec.tiers and not spec.groups:
            return True
        if self.user.tier_id in spec.tiers:
            return True
        return bool(spec.groups) and self.user.groups.filter(name__in=spec.groups).exists()

    @property
    def may_draw(self) -> bool:
        """Whether there is a model for it; a key has to be for pictures, as under /v1."""
        if self.api_key is not None and "images" not in self.api_key.scopes:
            return False
        return bool(self.models("image"))

    @property
    def may_keep_files(self) -> bool:
        return "files" in self.user.tier.features

    def require_files(self) -> None:
        """Raises ApiError where the tier has no files of one's own."""
        if not self.may_keep_files:
            raise ApiError(403, "not_allowed", "Your plan has no files of your own.")

    # --- models ---------------------------------------------------------------------------------

    def may_use(self, model: str) -> bool:
        own = [*self.user.tier.model_names, *self.user.granted_models]
        of_key = self.api_key.model_names if self.api_key else ["*"]
        return _matches(model, own) and _matches(model, of_key) and not engine().is_internal(model)

    def require_model(self, model: str, kind: ModelKind = "chat") -> None:
        """Raises WrongKind, or UnknownModel: also for what is there and may not be used."""
        self.check_models([model])
        engine().require(model, kind)

    def check_models(self, models: Iterable[str]) -> None:
        """Raises UnknownModel for one that may not be used, whether it is there or not."""
        for model in models:
            if not self.may_use(model):
                raise UnknownModel(model)

    def models(self, kind: ModelKind | None = None) -> list[ModelState]:
        states = engine().models(kind) if kind else engine().models()
        return [state for state in states if self.may_use(state.spec.name)]

    def default_model(self) -> str:
        """The one that answers where none is named: the installation's, or the first that is allowed."""
        default = engine().default_model
        if self.may_use(default):
            return default
        return next((state.spec.name for state in self.models("chat")), default)

    # --- how much -------------------------------------------------------------------------------

    @property
    def concurrent_runs(self) -> int:
        """Answers in chats at the same time. Of several, one is left to who waits for it."""
        most: int = self.user.tier.concurrent_runs
        return most - 1 if self.is_background and most > 1 else most

    def windows(self) -> list[Window]:
        """In each of which a request for an answer has to find room."""
        found = []
        if (limit := self.user.tier.requests_per_minute) is not None:
            found.append(Window(f"user:{self.user.pk}", limit, MINUTE_S))
        if self.api_key and self.api_key.requests_per_minute is not None:
            key = f"key:{self.api_key.pk}"
            found.append(Window(key, self.api_key.requests_per_minute, MINUTE_S))
        return found

    def budget(self) -> Budget:
        tier, own_cost = self.user.tier, self.user.cost_per_month
        return Budget(
            tokens_per_day=tier.tokens_per_day,
            tokens_per_month=tier.tokens_per_month,
            cost_per_month=tier.cost_per_month if own_cost is None else own_cost,
            key_tokens_per_day=self.api_key.tokens_per_day if self.api_key else None,
        )


def usable_key(user: Any, key_id: int) -> Any:
    """Of what goes on without its caller: the key that it was asked with, as of now. None: it opens
    nothing any more."""
    key = user.api_keys.filter(pk=key_id).first()
    if key is None or not key.is_usable(timezone.now()) or "api_keys" not in user.tier.features:
        return None
    return key


def rights_of(request: Any) -> Rights:
    """Of whoever sent an HTTP request."""
    return Rights(request.user, getattr(request, "api_key", None))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
