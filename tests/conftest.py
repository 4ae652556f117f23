"""What every test shares: a DATA_DIR of its own with real servers, four people, and a real site.

The environment is set before Django reads its settings, so this file imports nothing of ours at
its top.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

# How fast data is drawn says how busy the machine is, and nothing about Vitrine.
settings.register_profile("vitrine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("vitrine")

if TYPE_CHECKING:
    from tests.sites import Site, SiteMaker
    from webapp.models import User

_FROM_OUTSIDE = (
    "DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "SECRET_KEY_FALLBACKS",
    "ALLOWED_HOSTS",
    "DEBUG",
    "HOST",
    "PORT",
)
# In memory where there is room: databases are made and copied by the dozen. Near the root, so that
# sockets fit into their 107 bytes.
if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 4 * 2**30:
    tempfile.tempdir = "/dev/shm"
DATA_DIR = Path(tempfile.mkdtemp(prefix="vitrine-test-"))
# With `-n` the folder of the process that all others come from, and else the same.
SHARED_DIR = Path(os.environ.setdefault("TESTS_SHARED_DIR", str(DATA_DIR)))

for _name in _FROM_OUTSIDE:
    os.environ.pop(_name, None)
# A third of what a site's start costs is the compiling of our modules, and a run makes a hundred starts.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["VITRINE_MODERATION"] = "off"  # where a test is not about it: it loads a model
os.environ["VITRINE_SIGNUP_WORK_BITS"] = "0"  # likewise: no script does the sum
# Two processes of tests share two cores. A second thread of torch's only spins while it waits for the
# first one's turn: what needs several asks for them.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["GOMP_SPINCOUNT"] = "0"
# Read by triton when it is imported, which the first file that imports transformers does. With a GPU at
# hand, TRITON_INTERPRET=0 compiles kernels.
os.environ.setdefault("TRITON_INTERPRET", "1")
os.environ["DATA_DIR"] = str(DATA_DIR)
os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"


def pytest_configure() -> None:
    from django.conf import settings

    # The slow hash protects passwords, of which tests have none; site_settings.py has the same.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Random, by pytest-randomly, but for what has to come first or last."""
    from tests.scheduling import in_order

    items[:] = in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`, whatever `--dist` says."""
    from tests.scheduling import FileScheduling

    return FileScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """With `-n`: the workers inherit what is set above, and pytest-django would read the settings
    before they have set a DATA_DIR of their own."""
    del os.environ["DJANGO_SETTINGS_MODULE"]


def pytest_unconfigure() -> None:
    shutil.rmtree(DATA_DIR, ignore_errors=True)


@pytest.fixture(scope="session")
def servers() -> Iterator[None]:
    """Real Postgres and Valkey, without the waits for the disk."""
    from webapp.servers.postgres import Postgres
    from webapp.servers.valkey import Valkey

    valkey = Valkey(DATA_DIR, durable=False)
    postgres = Postgres(DATA_DIR, durable=False, may_create_databases=True)
    started = [valkey, postgres]
    try:
        for server in started:
            server.start()
        for server in started:
            server.wait_ready()
        yield
    finally:
        for server in reversed(started):
            server.stop()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(servers: None) -> None:
    """pytest-django makes its test database in our server."""
    from django.test import TransactionTestCase

    from tests.emptying import empty_tables
    from webapp.static_files import collect_if_changed

    collect_if_changed()  # pages name hashed files
    TransactionTestCase._fixture_teardown = empty_tables  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Async tests leave connections in asgiref's threads, and the database could not be dropped."""
    yield
    from django.db import connection

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture(autouse=True)
def _nobodys_scope() -> Iterator[None]:
    """A request of Django's test client leaves its scope in the test's context."""
    import structlog

    from webapp.tenancy import become_user

    become_user(None)
    structlog.contextvars.clear_contextvars()
    yield
    become_user(None)


@pytest.fixture
def clean_redis(servers: None) -> Iterator[None]:
    """Empty before and after: counted attempts, cached sessions."""
    from django.core.cache import cache

    cache.clear()
    yield
    cache.clear()


PASSWORD = "correct horse battery"


def _person(name: str) -> "User":
    from webapp.models import User

    return User.objects.create_user(f"{name.lower()}@example.org", PASSWORD, name=name)


@pytest.fixture
def alice(db: None) -> "User":
    """Owns."""
    return _person("Alice")


@pytest.fixture
def bob(db: None) -> "User":
    """Shares."""
    return _person("Bob")


@pytest.fixture
def charlie(db: None) -> "User":
    """Has no right."""
    return _person("Charlie")


@pytest.fixture
def admin(db: None) -> "User":
    from webapp.models import User

    return User.objects.create_superuser("admin@example.org", PASSWORD, name="Admin")


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """pytest-playwright with the system's Chromium."""
    from tests.browser.chromium import LAUNCH

    return {**browser_type_launch_args, **LAUNCH}


@pytest.fixture(scope="session")
def make_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SiteMaker"]:
    """Makes sites (`manage.py serve` in a process of its own) that a test may kill.

    Their DATA_DIRs are copies of one that has been prepared, which saves seconds for each.
    """
    from tests.sites import SiteMaker, close_visitors

    with tempfile.TemporaryDirectory(prefix="vitrine-") as folder:
        yield SiteMaker(Path(folder), SHARED_DIR / "prepared")
    close_visitors()


@pytest.fixture(scope="session")
def small_models(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The value of VITRINE_MODELS: one that never ends its answer by itself, a quick one, and one
    whose chat template has a form for tool calls."""
    from inference.builtin import MODEL_DIR
    from tests.inference.tiny_models import make_model

    folder: Path = tmp_path_factory.mktemp("chat-models")
    endless = make_model(
        folder / "endless", eos_token_id=None, num_hidden_layers=16, max_position_embeddings=700
    )
    short = make_model(folder / "short", max_position_embeddings=128, seed=1)
    caller = make_model(folder / "caller", tokenizer=MODEL_DIR, eos_token_id=None)
    return f"endless={endless},short={short},caller={caller}"


@pytest.fixture(scope="session")
def vitrine_server(make_site: "SiteMaker") -> Iterator["Site"]:
    """A running site with its engine, for all tests that do not break it."""
    with make_site(VITRINE_PRELOAD="true") as site:
        yield site
