"""A DATA_DIR with a finished cluster, servers on it that a test may break, a directory, a console."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.test import Client

from tests.webapp.scim_client import TOKEN, Directory
from tests.webapp.slapd import Slapd
from webapp.servers.postgres import Postgres

if TYPE_CHECKING:
    from webapp.models import User


@pytest.fixture
def console(client: Client, admin: "User") -> Client:
    """An administrator's browser."""
    client.force_login(admin)
    return client


@pytest.fixture(scope="session")
def made() -> Iterator[Path]:
    """A DATA_DIR with a finished cluster, to be copied."""
    with tempfile.TemporaryDirectory(prefix="vitrine-") as folder:
        postgres = Postgres(Path(folder), durable=False)
        postgres.start()
        postgres.wait_ready()
        postgres.stop()
        yield Path(folder)


@pytest.fixture
def data_dir(made: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vitrine-") as folder:
        shutil.copytree(made / "postgres", Path(folder) / "postgres")
        yield Path(folder)


@pytest.fixture
def start(data_dir: Path) -> Iterator[Callable[[], Postgres]]:
    """Starts a Postgres on `data_dir` and waits for it; all are ended afterwards."""
    started: list[Postgres] = []

    def start_one() -> Postgres:
        postgres = Postgres(data_dir)
        started.append(postgres)
        postgres.start()
        postgres.wait_ready()
        return postgres

    yield start_one
    for postgres in started:
        postgres.stop()


def query(postgres: Postgres, sql: str, **who: str) -> list[tuple[object, ...]]:
    with psycopg.connect(postgres.conninfo(**who)) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def scim(settings: Any) -> Directory:
    """Of a site with VITRINE_SCIM_TOKEN."""
    import tests.webapp.urls_with_scim  # noqa: F401 - the site's addresses are chosen at import

    settings.SCIM_TOKEN = TOKEN
    settings.ROOT_URLCONF = "tests.webapp.urls_with_scim"
    return Directory()


@pytest.fixture(scope="session")
def slapd() -> Iterator[Slapd]:
    with tempfile.TemporaryDirectory(prefix="vitrine-") as folder, Slapd(Path(folder)) as server:
        yield server


@pytest.fixture
def directory(slapd: Slapd, settings: Any) -> Iterator[Slapd]:
    """Configured as VITRINE_LDAP_…; without people."""
    settings.DIRECTORY = slapd.settings()
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        "webapp.directory_sign_in.DirectoryBackend",
    ]
    yield slapd
    slapd.clear()


@pytest.fixture
def dora(directory: Slapd, client: Client) -> "User":
    """Of the directory, and signed in with `client`."""
    from tests.webapp.directory_visits import SECRET, sign_in
    from webapp.models import User

    directory.add_person("dora", SECRET)
    sign_in(client)
    return User.objects.get(email="dora@example.org")
