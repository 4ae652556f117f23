"""After a transactional test the database is as the migrations made it."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from chat.models import Conversation
from tests.emptying import empty_tables
from webapp.models import Tier, User
from webapp.tenancy import as_system, as_user
from webapp.tiers import TIERS

pytestmark = pytest.mark.django_db(transaction=True)


def filled_tables() -> dict[str, int]:
    """How many rows each table holds that holds any, whoever may see them."""
    with connection.cursor() as cursor, as_system():
        tables = connection.introspection.table_names(cursor)
        counts = {}
        for table in tables:
            cursor.execute(f'SELECT count(*) FROM "{table}"')
            counts[table] = cursor.fetchone()[0]
    return {table: count for table, count in counts.items() if count}


def test_nothing_stays_but_what_the_migrations_made() -> None:
    empty_tables()
    before = filled_tables()
    assert before["webapp_tier"] == len(TIERS)
    user = User.objects.create_user("alice@example.org", "a long password", name="Alice")
    user.user_permissions.add(Permission.objects.first())
    with as_user(user.pk):
        Conversation.objects.create(owner=user, title="Dinner")  # found by a GIN index too
    Tier.objects.filter(slug="free").update(name="Changed", requests_per_minute=None)
    assert filled_tables().keys() - before.keys() >= {
        "webapp_user",
        "webapp_user_user_permissions",
        "chat_conversation",
        "chat_searchentry",
    }
    permission = ContentType.objects.get_for_model(User).pk

    empty_tables()

    assert filled_tables() == before
    assert set(before) == {
        "auth_permission",
        "django_content_type",
        "django_migrations",
        "webapp_tier",
    }
    assert Tier.objects.get(slug="free").name == "Free"
    ContentType.objects.clear_cache()
    assert ContentType.objects.get_for_model(User).pk == permission


def test_a_table_that_has_grown_is_made_anew() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_session SELECT n, repeat('x', 1000), now()"
            " FROM generate_series(1, 3000) n"
        )
        assert _size(cursor) > 2**20
        empty_tables()
        assert _size(cursor) == 0


def _size(cursor: Any) -> int:
    cursor.execute("SELECT pg_relation_size('django_session')")
    return int(cursor.fetchone()[0])
