"""Django's database settings from DATABASE_URL, or for the embedded Postgres."""

from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from psycopg import Error
from psycopg.conninfo import conninfo_to_dict

from retrieval.db import NUM_THREADS
from webapp.servers.postgres import DATABASE, ROLE
from webapp.servers.sockets import postgres_socket_directory

# Beside one for each thread that keeps its own, so that nobody waits for a connection.
_POOL = {"min_size": 1, "max_size": NUM_THREADS + 10, "timeout": 10}
_NAMES = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}


def database_settings(url: str, data_dir: Path) -> dict[str, Any]:
    if url:
        parameters = _parse(url)
    else:
        host = str(postgres_socket_directory(data_dir))
        parameters = {"host": host, "dbname": DATABASE, "user": ROLE}
    named = {_NAMES[key]: value for key, value in parameters.items() if key in _NAMES}
    options = {key: value for key, value in parameters.items() if key not in _NAMES}
    return {
        "ENGINE": "webapp.postgres",
        **named,
        "OPTIONS": {"application_name": "vitrine", **options, "pool": dict(_POOL)},
    }


def _parse(url: str) -> dict[str, Any]:
    """The parameters of a libpq URL or key=value string; an error never repeats the password."""
    try:
        parameters = conninfo_to_dict(url)
    except Error:
        raise ImproperlyConfigured(
            "DATABASE_URL is not understood; write postgresql://user:password@host:port/database."
        ) from None
    if not str(parameters.get("port", "0")).replace(",", "").isdigit():
        raise ImproperlyConfigured("DATABASE_URL: the port is no number.")
    if not parameters.get("dbname"):
        raise ImproperlyConfigured("DATABASE_URL names no database.")
    return parameters
