"""/healthz: this process answers. /readyz: it can do its work, or the reasons why not."""

import asyncio
import shutil
from collections.abc import Callable

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from chat import service
from webapp import lifecycle
from webapp.cache import ping

CHECK_TIMEOUT_S = 3.0
LEAST_FREE_MIB = 64
"""Of the disk: Postgres takes 16 at a time for its log, and ends where it gets none."""


@never_cache
@login_not_required
async def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@never_cache
@login_not_required
async def readyz(request: HttpRequest) -> JsonResponse:
    """503 with one sentence per reason until the default model has generated its canary.

    One that sleeps, or is on its way back, has done so: requests wait for it.
    """
    answers = await asyncio.gather(
        _check("database", _ask_database), _check("redis", _ask_redis), _check("disk", _ask_disk)
    )
    reasons = {name: reason for name, reason in [*answers, _model(), _draining()] if reason}
    if reasons:
        return JsonResponse({"status": "unready", "reasons": reasons}, status=503)
    return JsonResponse({"status": "ready"})


async def _check(name: str, ask: Callable[[], str | None]) -> tuple[str, str | None]:
    """`ask` says what is wrong, or fails."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return name, await sync_to_async(ask, thread_sensitive=False)()
    except TimeoutError:
        return name, f"no answer within {CHECK_TIMEOUT_S:.0f} s"
    except Exception as error:
        # The type only: a connection error's text holds addresses and user names.
        return name, f"failed ({type(error).__name__})"


def _ask_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        connection.close()


def _ask_redis() -> None:
    ping(CHECK_TIMEOUT_S)


def _ask_disk() -> str | None:
    """Nobody's message can be kept on a full one, though pages still come."""
    is_full = shutil.disk_usage(settings.DATA_DIR).free < LEAST_FREE_MIB * 2**20
    return f"less than {LEAST_FREE_MIB} MiB free where DATA_DIR lies" if is_full else None


def _model() -> tuple[str, str | None]:
    default = next((state for state in service.model_states() if state.is_default), None)
    if default is None:
        return "model", "no default model"
    fine = ["ready", "asleep"]
    if not settings.PRELOAD_MODEL:
        fine.append("cold")
    if default.revision:  # known since it was ready first
        fine.append("loading")
    return "model", None if default.state in fine else f"{default.spec.name} is {default.state}"


def _draining() -> tuple[str, str | None]:
    return "process", "shutting down" if lifecycle.is_draining() else None
