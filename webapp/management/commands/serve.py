"""`manage.py serve`: the whole of Vitrine from one command."""

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from chat.sealing import key_marks
from webapp.env import env_str, unread
from webapp.serving.console import announce
from webapp.serving.supervisor import Plan, Supervisor
from webapp.site_address import site_url


class Command(BaseCommand):
    help = "Start everything: database, queue, web server, engine and worker."
    # Checks load every view; they are for tests, and cost a second at each start.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        plan = Plan(
            data_dir=settings.DATA_DIR,
            host=settings.HOST,
            port=settings.PORT,
            site_url=site_url(),
            embedded_postgres=not env_str("DATABASE_URL"),
            embedded_redis=not env_str("REDIS_URL"),
            drain_timeout_s=settings.DRAIN_TIMEOUT_S,
            log_file=settings.LOG_FILE,
            key_marks=tuple(key_marks()),
        )
        for name, likely in unread("VITRINE_").items():
            meant = f" Is {likely} meant?" if likely else ""
            announce(f"{name} is set, and nothing reads it.{meant}")
        sys.exit(Supervisor(plan).run())
