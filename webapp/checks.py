"""System checks of what only the database can tell."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections

_ROLE = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"


@register(Tags.database)
def row_level_security_binds_us(
    databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """The role of DATABASE_URL must be one that row-level security applies to."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        with connections[alias].cursor() as cursor:
            cursor.execute(_ROLE)
            row = cursor.fetchone()
        if row and row[0]:
            found.append(
                Error(
                    "The database role bypasses row-level security.",
                    hint="Let DATABASE_URL name a role that is neither SUPERUSER nor BYPASSRLS"
                    " and owns the database: CREATE ROLE vitrine LOGIN PASSWORD '…';"
                    " ALTER DATABASE … OWNER TO vitrine;",
                    id="vitrine.E001",
                )
            )
    return found
