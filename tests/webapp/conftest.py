"""A DATA_DIR with a finished cluster, and servers on it that a test may break."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from webapp.servers.postgres import Postgres


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
