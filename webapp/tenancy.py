"""Whose rows a piece of work may see.

The scope travels with the context (tasks and threads inherit it) and the database connection
tells it to Postgres (webapp/postgres/base.py), whose row-level security does the rest. Work that
nobody has claimed has no scope and sees no protected row.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NOBODY = ""
SYSTEM = "system"

_scope: ContextVar[str] = ContextVar("vitrine_scope", default=NOBODY)


def current_scope() -> str:
    """`system`, `user:<id>` or the empty string, as in the setting `vitrine.scope`."""
    return _scope.get()


@contextmanager
def as_user(user_id: int) -> Iterator[None]:
    with _as(_user(user_id)):
        yield


@contextmanager
def as_system() -> Iterator[None]:
    """Every user's rows. For maintenance only; say in the code why it is needed."""
    with _as(SYSTEM):
        yield


@contextmanager
def as_nobody() -> Iterator[None]:
    with _as(NOBODY):
        yield


def become_user(user_id: int | None) -> None:
    """Set the scope to the end of this context: of a request, whose stream outlives its view."""
    _scope.set(NOBODY if user_id is None else _user(user_id))


def _user(user_id: int) -> str:
    return f"user:{user_id}"


@contextmanager
def _as(scope: str) -> Iterator[None]:
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
