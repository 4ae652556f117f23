"""What Postgres cannot store never reaches it, wherever a model puts it."""

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from chat.storable import is_storable, storable
from chat.tools import BUILT_IN
from chat.tools.base import run_tool

if TYPE_CHECKING:
    from webapp.models import User

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)


@given(ANY_TEXT)
def test_what_was_made_storable_is(text: str) -> None:
    made = storable(text)
    assert is_storable(made)
    assert len(made) == len(text)
    assert (made == text) == is_storable(text)


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["\x00", "a\ud800b", "\udfff", "plain", "日本 🙂"])
def test_postgres_stores_it(text: str, alice: "User") -> None:
    from django.db.models import JSONField

    value = JSONField().get_db_prep_value(storable(text), connection)
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::jsonb, %s::text", [value, storable(text)])
        assert cursor.fetchone() is not None


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("calculator", '{"expression": "1\\u0000"}'),
        ("calculator", '{"expression": "\\ud800"}'),
        ("no\x00ne", "{}"),
        ("clock", '{"timezone": "\\ud800"}'),
    ],
)
async def test_errors_of_tools_are_storable(name: str, arguments: str) -> None:
    content, is_error = await run_tool(dict(BUILT_IN), name, arguments)
    assert is_error
    assert is_storable(content)
