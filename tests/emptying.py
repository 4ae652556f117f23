"""What a transactional test has left in the database, taken out again.

Django's way is a TRUNCATE of every table, which makes hundreds of files anew, and a look for every
permission. That costs more than most tests do, which have written into a few tables only.
"""

from typing import Any

import psycopg

# No other transaction writes meanwhile, as with TRUNCATE. An index other than a B-tree would keep what
# is deleted, and later tests would search it: such a table is made anew, as is one that has grown.
# What migrations say of the schema stays.
_EMPTY = """
DO $$
DECLARE
    tables CONSTANT oid[] := ARRAY(
        SELECT oid FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
            AND relname NOT IN ('django_migrations', 'django_content_type', 'auth_permission')
        ORDER BY oid
    );
    made_anew CONSTANT oid[] := ARRAY(
        SELECT indrelid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE relam <> (SELECT oid FROM pg_am WHERE amname = 'btree')
    );
    one oid;
BEGIN
    EXECUTE 'LOCK TABLE ' || (SELECT string_agg(each::regclass::text, ', ') FROM unnest(tables) each)
        || ' IN EXCLUSIVE MODE';
    FOREACH one IN ARRAY tables LOOP
        IF pg_relation_size(one) > 2 ^ 20 OR one = ANY (made_anew) AND pg_relation_size(one) > 0 THEN
            EXECUTE 'TRUNCATE ' || one::regclass || ' CASCADE';
        ELSIF pg_relation_size(one) > 0 THEN
            EXECUTE 'DELETE FROM ' || one::regclass;
        END IF;
    END LOOP;
END $$
"""


def empty_tables(*test_case: Any) -> None:
    """In the place of `TransactionTestCase._fixture_teardown`. Raises psycopg.Error.

    As the superuser, from whom no rows are hidden, and in a replica's role, in which neither triggers
    nor foreign keys ask for an order.
    """
    from django.db import connection

    from webapp.models import Tier
    from webapp.tiers import ensure_tiers

    known = connection.settings_dict
    with psycopg.connect(
        host=known["HOST"],
        dbname=known["NAME"],
        user="postgres",
        options="-c session_replication_role=replica -c lock_timeout=60s",
    ) as superuser:
        superuser.execute(_EMPTY)
    ensure_tiers(Tier)
