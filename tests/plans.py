"""How Postgres would answer a query if the tables were large: plans, and no times."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext


@contextmanager
def queries() -> Iterator[list[str]]:
    """The statements of what is done within, settings of the connection left out."""
    found: list[str] = []
    with CaptureQueriesContext(connection) as captured:
        yield found
    found += [one["sql"] for one in captured if "set_config" not in one["sql"]]


@contextmanager
def by_indexes() -> Iterator[None]:
    """Within, in one transaction, Postgres takes an index wherever one will do: on the few rows of a
    test a walk over all would be cheaper."""
    names = ("enable_seqscan", "enable_sort", "enable_bitmapscan")
    with transaction.atomic(), connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"SET LOCAL {name} = off")
        yield
        for name in names:
            cursor.execute(f"SET LOCAL {name} = on")


def plan_of(sql: str, params: Any = None) -> str:
    """By indexes. A sort, or a walk, that is in it still has no index to be replaced by."""
    with by_indexes(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}", params)
        return "\n".join(row[0] for row in cursor.fetchall())


def num_looked_at(sql: str, params: Any, table: str) -> int:
    """How many rows of a table Postgres goes through for a statement, which it runs."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
        [(plan,)] = cursor.fetchall()
    return _num_in(plan[0]["Plan"], table)


def _num_in(node: dict[str, Any], table: str) -> int:
    own = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    num = own * node["Actual Loops"] if node.get("Relation Name") == table else 0
    return int(num + sum(_num_in(each, table) for each in node.get("Plans", ())))
