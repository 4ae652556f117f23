"""A Postgres of its own with Vitrine's tables, which Django in this process uses."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def ground() -> Iterator[None]:
    """Models can be imported within."""
    with tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder:
        os.environ["DATA_DIR"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
        for name in ("DATABASE_URL", "REDIS_URL"):
            os.environ.pop(name, None)
        from webapp.servers.postgres import Postgres

        postgres = Postgres(Path(folder))
        postgres.start()
        try:
            postgres.wait_ready()
            import django

            django.setup()
            from webapp.schema import migrate_if_needed

            migrate_if_needed()
            yield
        finally:
            from django.db import connection

            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]
            postgres.stop()
