"""/healthz, /readyz and the queue of chores."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone

from chat import service
from chat.engine import close_engine
from inference import BUILTIN, BUILTIN_EMBEDDING, Engine, ModelSpec, ModelState, UnknownModel
from webapp import chores, lifecycle
from webapp.cache import JsonSerializer
from webapp.celery import CHORES, READING, SystemTask, app
from webapp.moderation_settings import classifier_specs
from webapp.schema import migrate_if_needed
from webapp.tasks import clear_sessions
from webapp.tenancy import current_scope

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


def test_a_process_that_answers_is_alive(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_it_is_not_ready_before_the_default_model_is(client: Client) -> None:
    response = client.get("/readyz")
    assert response.status_code == 503
    assert set(response.json()["reasons"]) == {"model"}


def test_it_is_ready_without_a_model_that_is_loaded_on_first_use(
    client: Client, settings: Any
) -> None:
    settings.PRELOAD_MODEL = False
    assert client.get("/readyz").status_code == 200


def test_it_is_not_ready_on_a_full_disk(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRELOAD_MODEL = False
    full = shutil.disk_usage(settings.DATA_DIR)._replace(free=2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["reasons"] == {"disk": "less than 64 MiB free where DATA_DIR lies"}


@pytest.mark.parametrize(
    ("state", "revision", "status"),
    [
        ("ready", "r1", 200),
        ("asleep", "r1", 200),
        ("loading", "r1", 200),  # it wakes, and requests wait for it
        ("loading", "", 503),
        ("failed", "r1", 503),
    ],
)
def test_a_default_model_that_was_ready_once_may_sleep(
    client: Client, monkeypatch: pytest.MonkeyPatch, state: Any, revision: str, status: int
) -> None:
    spec = ModelSpec("model", Path("/model"), "Model")
    known = ModelState(spec, state, is_default=True, revision=revision)
    monkeypatch.setattr(service, "model_states", lambda: [known])
    assert client.get("/readyz").status_code == status


@pytest.fixture
async def no_engine() -> AsyncIterator[None]:
    """The next one is made of the test's settings, and the next test's of its own."""
    await close_engine()
    yield
    await close_engine()


async def test_a_start_goes_on_without_models_that_are_not_there(
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    no_engine: None,
) -> None:
    """A model that was pulled and named may have been deleted since."""
    began, loaded = asyncio.Event(), []

    async def run() -> None:
        began.set()

    def load(engine: Engine, model: str) -> None:
        loaded.append(model)
        raise UnknownModel(model)

    monkeypatch.setattr(chores, "run", run)
    monkeypatch.setattr(Engine, "load", load)
    monkeypatch.setattr(lifecycle, "_chores", None)
    settings.ENGINE = replace(settings.ENGINE, default_model="org/gone")
    settings.RERANK_MODEL = BUILTIN
    settings.QUESTION_MODEL = "org/gone-too"
    settings.MODERATION = classifier_specs(["builtin"])
    assert service.problems_now() == []
    await lifecycle.startup()
    await asyncio.wait_for(began.wait(), 5)
    assert loaded == [BUILTIN, BUILTIN_EMBEDDING]
    assert [problem.partition(":")[0] for problem in service.problems_now()] == [
        "VITRINE_DEFAULT_MODEL",
        "VITRINE_RERANK_MODEL",
        "VITRINE_QUESTION_MODEL",
    ]
    assert all(problem in caplog.text for problem in service.problems_now())


def test_each_missing_part_is_a_reason(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRELOAD_MODEL = False
    monkeypatch.setattr(lifecycle, "_draining", True)
    cache.close()
    settings.REDIS_URL = "redis://127.0.0.1:1"
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:1",
        }
    }
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["reasons"] == {
        "redis": "failed (ConnectionError)",
        "process": "shutting down",
    }


def test_chores_are_json_only_and_acknowledged_late() -> None:
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_serializer == "json"
    assert app.conf.task_acks_late
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    app.loader.import_default_modules()
    assert scheduled <= set(app.tasks)


@pytest.mark.usefixtures("clean_redis")
def test_chores_are_done_before_files_that_wait_are_read() -> None:
    for number in range(50):
        app.send_task("retrieval.tasks.read_version", [str(number)])
    app.send_task("chat.tasks.resume_imports")
    done: list[str] = []

    def take(body: Any, message: Any) -> None:
        done.append(message.headers["task"])
        message.ack()

    with app.connection_for_read() as connection:
        queues = [app.amqp.queues[name] for name in (CHORES, READING)]
        with connection.Consumer(queues, callbacks=[take], accept=["json"]) as consumer:
            consumer.qos(prefetch_count=1)
            while len(done) < 2:
                connection.drain_events(timeout=10)
    assert done == ["chat.tasks.resume_imports", "retrieval.tasks.read_version"]


def test_what_is_done_again_and_again_does_not_pile_up() -> None:
    for entry in app.conf.beat_schedule.values():
        assert entry["options"]["expires"] > 0


def test_expired_sessions_are_forgotten() -> None:
    for key, days in (("old", -1), ("new", 1)):
        expires = timezone.now() + timezone.timedelta(days=days)
        Session.objects.create(session_key=key, session_data="", expire_date=expires)
    clear_sessions()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["new"]


def test_a_task_runs_in_the_systems_scope() -> None:
    seen = []

    @app.task(base=SystemTask)
    def look() -> None:
        seen.append(current_scope())

    look.apply()
    assert seen == ["system"]
    assert current_scope() == ""


def test_what_is_cached_is_json() -> None:
    serializer = JsonSerializer()
    for value in (None, 5, True, "ü", [1, "a"], {"a": {"b": 1.5}}):
        written = serializer.dumps(value)
        assert serializer.loads(str(written).encode() if type(written) is int else written) == value
    with pytest.raises(TypeError):
        serializer.dumps(object())
    cache.set("n", 41)
    assert cache.incr("n") == 42


def test_a_schema_that_is_up_to_date_costs_two_queries(
    django_assert_max_num_queries: Any,
) -> None:
    with django_assert_max_num_queries(2):
        assert migrate_if_needed() == 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_migrations")
