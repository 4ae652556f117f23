"""What has to be done before the first page: schema, static files, set-up link."""

import json
from importlib import import_module

from webapp.serving.console import say

_NEEDED_SOON = (
    "webapp.urls",
    "django.core.asgi",
    "django.core.handlers.asgi",
    "channels.routing",
    "channels_redis.pubsub",
    "chat.routing",
    "psycopg_pool",
    "redis.asyncio",
    "webapp.sessions",
    "django.template.loader_tags",
    "webapp.templatetags.importmap",
    "autobahn.websocket.protocol",
    "celery.apps.worker",
    "celery.concurrency.prefork",
    "kombu.transport.redis",
)


def preload() -> None:
    """Import what the children will need, so that each starts with it."""
    for name in _NEEDED_SOON:
        import_module(name)


def prepare() -> str:
    """Run in a child, which may use the database. Returns JSON for the supervisor."""
    from webapp.checks import proxies_are_named
    from webapp.schema import migrate_if_needed
    from webapp.setup import issue_setup_token
    from webapp.static_files import collect_if_changed

    problem = _problem()
    if problem:
        return json.dumps({"problem": problem})
    num_applied = migrate_if_needed()
    if num_applied:
        say(f"Applied {num_applied} database migrations")
    if collect_if_changed():
        say("Collected the static files")
    for warning in proxies_are_named():
        say(f"{warning.msg} {warning.hint}")
    return json.dumps({"problem": None, "setup_token": issue_setup_token()})


def _problem() -> str | None:
    """What is wrong with the servers that the environment names, as a sentence."""
    import psycopg
    from django.db import connection
    from redis import RedisError

    from chat import service
    from webapp import schema
    from webapp.cache import ping
    from webapp.checks import row_level_security_binds_us
    from webapp.serving.database import problem_of

    try:
        # Not through the pool, which would go on trying for its whole timeout.
        problem = problem_of(connection.get_connection_params())
    except psycopg.OperationalError as error:
        return f"The database cannot be reached (DATABASE_URL): {error}"
    if problem:
        return problem
    found = row_level_security_binds_us(databases=["default"])
    try:
        ping(5.0)
    except RedisError as error:
        return f"Redis cannot be reached (REDIS_URL): {error}"
    if found:
        return f"{found[0].msg} {found[0].hint}"
    if newer := schema.problem():
        return newer
    return service.moderation_problem()
