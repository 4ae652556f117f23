"""Rows are seen by those who may read their collection, whatever the query says.

Who may is asked of retrieval_access at each query, so that sharing and its end hold at once. A passage
is visible when its terms hold one of the collections of the scope and what the transaction looks for
(`vitrine.passages`, empty for everything): behind a policy of another form the index of terms would
never be used, because `@@` counts as leaky (chat's migration `search` tells more). Passages, vectors
and words are written in the system's scope alone.
"""

from typing import Any

from django.conf import settings
from django.db import migrations

_FUNCTIONS = """
CREATE FUNCTION retrieval_is_system() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(current_setting('vitrine.scope', true), '') = 'system'
$$;
CREATE FUNCTION retrieval_me() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT substring(current_setting('vitrine.scope', true) FROM '^user:([0-9]+)$')::bigint
$$;
"""

_SCOPE = """
CREATE FUNCTION retrieval_scope() RETURNS tsquery LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN retrieval_is_system() THEN $q$':system'$q$::tsquery
    ELSE coalesce(
        (SELECT string_agg(quote_literal(':c:' || id), ' | ') FROM retrieval_collection),
        $q$':nobody'$q$
    )::tsquery END
$$;
"""
_UNDO_FUNCTIONS = """
DROP FUNCTION retrieval_me();
DROP FUNCTION retrieval_is_system();
"""

_MINE = "(SELECT retrieval_is_system()) OR owner_id = (SELECT retrieval_me())"
_MY_ACCESS = f"""
    {_MINE} OR user_id = (SELECT retrieval_me())
    OR (user_id IS NULL AND group_id IS NULL AND (SELECT retrieval_me()) IS NOT NULL)
    OR group_id IN (SELECT group_id FROM {{memberships}} WHERE user_id = (SELECT retrieval_me()))
"""
_READABLE = "collection_id IN (SELECT id FROM retrieval_collection)"
_WRITABLE = f"""
    collection_id IN (
        SELECT c.id FROM retrieval_collection c
        WHERE (SELECT retrieval_is_system()) OR c.owner_id = (SELECT retrieval_me())
            OR c.id IN (SELECT a.collection_id FROM retrieval_access a WHERE a.may_write))
"""
_PASSAGE = """
    terms @@ (SELECT retrieval_scope()
        && coalesce(current_setting('vitrine.passages', true), '')::tsquery)
"""
_SYSTEM = "(SELECT retrieval_is_system())"

# table: who reads, who writes
_POLICIES = {
    "retrieval_access": (_MY_ACCESS, _MINE),
    "retrieval_collection": (
        f"{_MINE} OR id IN (SELECT collection_id FROM retrieval_access)",
        _MINE,
    ),
    "retrieval_document": (_READABLE, _WRITABLE),
    "retrieval_version": (_READABLE, _WRITABLE),
    "retrieval_chunk": (_PASSAGE, _SYSTEM),
    "retrieval_embedding": (_READABLE, _SYSTEM),
    "retrieval_term": (_READABLE, _SYSTEM),
}

_CASCADES = """
ALTER TABLE retrieval_chunk
    ADD CONSTRAINT chunk_of_version FOREIGN KEY (version_id)
        REFERENCES retrieval_version ON DELETE CASCADE;
ALTER TABLE retrieval_embedding
    ADD CONSTRAINT embedding_of_chunk FOREIGN KEY (chunk_id)
        REFERENCES retrieval_chunk ON DELETE CASCADE;
ALTER TABLE retrieval_term
    ADD CONSTRAINT term_of_collection FOREIGN KEY (collection_id)
        REFERENCES retrieval_collection ON DELETE CASCADE;
CREATE INDEX chunk_terms ON retrieval_chunk USING gin (terms) WITH (fastupdate = off);
ALTER TABLE retrieval_embedding ALTER COLUMN vector SET STORAGE PLAIN;
"""


def _protect(apps: Any, schema_editor: Any) -> None:
    user = apps.get_model(settings.AUTH_USER_MODEL)
    memberships = user._meta.get_field("groups").remote_field.through._meta.db_table
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_FUNCTIONS)
        for table, (readers, writers) in _POLICIES.items():
            if table == "retrieval_chunk":
                cursor.execute(_SCOPE)  # its table is protected by now
            readers = readers.format(memberships=memberships)
            cursor.execute(
                f"""
                ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
                ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
                CREATE POLICY readers ON {table} FOR SELECT USING ({readers});
                CREATE POLICY inserters ON {table} FOR INSERT WITH CHECK ({writers});
                CREATE POLICY updaters ON {table} FOR UPDATE USING ({writers}) WITH CHECK ({writers});
                CREATE POLICY deleters ON {table} FOR DELETE USING ({writers});
                """
            )


def _expose(apps: Any, schema_editor: Any) -> None:
    with schema_editor.connection.cursor() as cursor:
        for table in reversed(_POLICIES):
            for policy in ("readers", "inserters", "updaters", "deleters"):
                cursor.execute(f"DROP POLICY {policy} ON {table}")
            cursor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
            cursor.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
            if table == "retrieval_chunk":
                cursor.execute("DROP FUNCTION retrieval_scope()")
        cursor.execute(_UNDO_FUNCTIONS)


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0001_documents"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(_CASCADES, migrations.RunSQL.noop),
        migrations.RunPython(_protect, _expose),
    ]
