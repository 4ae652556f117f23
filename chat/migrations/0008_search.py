"""Search terms, written by triggers in the transaction that writes the text, for every writer alike.

Postgres' own parser knows no words in Chinese, Japanese or Thai and breaks others at combining
marks, so the terms are made here: a run of a script without spaces becomes its pairs of characters
(and its last character), any other run is a word; accents and case are dropped.

A policy's own condition is tried before any other that could leak what it reads, and `@@` counts as
one that could, so an index of terms would never be used behind a policy that compares owners. Here
the policy is the search: each row's terms name its owner, and a row is visible when they hold the
connection's scope and what the transaction looks for (`vitrine.search`, empty for everything).
"""

from typing import Any

from django.db import migrations

from retrieval.characters import DROPPED, RUN, SAME

PART_CHARS = 16_000  # positions in a tsvector end at 16,383, those of one token at its 256th
OVERLAP_CHARS = 200  # a phrase at the end of a part is whole in one of two
MAX_WORD_CHARS = 64

_COLLATIONS = ("pg_unicode_fast", "und-x-icu", "pg_c_utf8", "C.utf8")

_FUNCTIONS = f"""
CREATE FUNCTION chat_fold(body text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT normalize({{same}}, NFKC)
$$;

CREATE FUNCTION chat_tokens(body text) RETURNS TABLE (token text, kind text, at bigint)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    WITH runs AS MATERIALIZED (
        SELECT n, run[1] IS NOT NULL AS is_spaceless, run[2] IS NOT NULL AS is_picture,
            CASE WHEN run[1] IS NULL THEN ARRAY[coalesce(run[2], left(run[3], {MAX_WORD_CHARS}))]
            ELSE string_to_array(run[1], NULL) END AS pieces
        FROM regexp_matches(chat_fold(body), '{RUN}', 'g') WITH ORDINALITY AS found (run, n)
    ), characters AS (
        SELECT n, i, piece, is_spaceless, is_picture,
            lead(piece) OVER (PARTITION BY n ORDER BY i) AS following
        FROM runs, unnest(pieces) WITH ORDINALITY AS piece (piece, i)
    )
    SELECT
        CASE WHEN is_spaceless THEN piece || coalesce(following, '') ELSE piece END,
        CASE
            WHEN is_picture THEN 'picture'
            WHEN NOT is_spaceless THEN 'word'
            WHEN following IS NOT NULL THEN 'pair'
            WHEN i = 1 THEN 'single'
            ELSE 'last'
        END,
        row_number() OVER (ORDER BY n, i)
    FROM characters
$$;

-- No token holds a quote, a backslash or a colon: all of them separate words.
CREATE FUNCTION chat_terms(body text, owner_id bigint) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT format($q$':user:%s' ':system' %s$q$, owner_id, (
        SELECT string_agg(format($q$'%s':%s$q$, token, least(at, 16383)), ' ')
        FROM chat_tokens(body)
    ))::tsvector
$$;

-- One word or phrase of a query: its tokens side by side, the last as the beginning of a word unless
-- it has to be exact. Null when there is nothing in it to look for.
CREATE FUNCTION chat_search_unit(body text, is_exact boolean) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT string_agg(
        format($q$'%s'%s$q$, token, CASE
            WHEN kind = 'single' THEN ':*'
            WHEN kind = 'word' AND at = end_at AND length(token) > 1 AND NOT is_exact THEN ':*'
            ELSE '' END),
        ' <-> ' ORDER BY at
    )::tsquery
    FROM (SELECT *, max(at) OVER () AS end_at FROM chat_tokens(body)) AS tokens
    WHERE kind <> 'last' OR at < end_at  -- it is in the pair before it
$$;

CREATE FUNCTION chat_write_search_entries(
    owner bigint, conversation uuid, message uuid, written timestamptz, body text
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO chat_searchentry (owner_id, conversation_id, message_id, part, created_at, terms)
    SELECT owner, conversation, message, part, written, setweight(
        chat_terms(substr(body, 1 + part * {PART_CHARS}, {PART_CHARS + OVERLAP_CHARS}), owner),
        (CASE WHEN message IS NULL THEN 'A' ELSE 'D' END)::"char")
    FROM generate_series(0, (length(body) - 1) / {PART_CHARS}) AS part
    WHERE body <> ''
$$;

CREATE FUNCTION chat_message_to_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM chat_searchentry WHERE message_id = NEW.id;
    END IF;
    PERFORM chat_write_search_entries(
        c.owner_id, c.id, NEW.id, NEW.created_at, NEW.text
    ) FROM chat_conversation c WHERE c.id = NEW.conversation_id;
    RETURN NULL;
END
$$;

CREATE FUNCTION chat_title_to_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM chat_searchentry WHERE conversation_id = NEW.id AND message_id IS NULL;
    END IF;
    PERFORM chat_write_search_entries(NEW.owner_id, NEW.id, NULL, NEW.created_at, NEW.title);
    RETURN NULL;
END
$$;
"""

_DROP_FUNCTIONS = """
DROP FUNCTION chat_title_to_search();
DROP FUNCTION chat_message_to_search();
DROP FUNCTION chat_write_search_entries(bigint, uuid, uuid, timestamptz, text);
DROP FUNCTION chat_search_unit(text, boolean);
DROP FUNCTION chat_terms(text, bigint);
DROP FUNCTION chat_tokens(text);
DROP FUNCTION chat_fold(text);
"""

# The database deletes with the message itself, whoever deletes it.
_TABLE = """
ALTER TABLE chat_searchentry
    ADD CONSTRAINT searchentry_of_conversation FOREIGN KEY (conversation_id)
        REFERENCES chat_conversation ON DELETE CASCADE,
    ADD CONSTRAINT searchentry_of_message FOREIGN KEY (message_id)
        REFERENCES chat_message ON DELETE CASCADE,
    ALTER COLUMN terms SET STATISTICS 1000;
CREATE TRIGGER to_search AFTER INSERT OR UPDATE OF text ON chat_message
    FOR EACH ROW EXECUTE FUNCTION chat_message_to_search();
CREATE TRIGGER to_search AFTER INSERT OR UPDATE OF title ON chat_conversation
    FOR EACH ROW EXECUTE FUNCTION chat_title_to_search();
"""
_UNDO_TABLE = """
DROP TRIGGER to_search ON chat_conversation;
DROP TRIGGER to_search ON chat_message;
ALTER TABLE chat_searchentry
    DROP CONSTRAINT searchentry_of_message,
    DROP CONSTRAINT searchentry_of_conversation;
"""

_BACKFILL = """
SELECT set_config('vitrine.scope', 'system', true);
SELECT chat_write_search_entries(c.owner_id, c.id, NULL, c.created_at, c.title)
FROM chat_conversation c;
SELECT chat_write_search_entries(c.owner_id, c.id, m.id, m.created_at, m.text)
FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id;
"""

_SCOPE = "quote_literal(':' || coalesce(current_setting('vitrine.scope', true), ''))::tsquery"
_SEARCH = "coalesce(current_setting('vitrine.search', true), '')::tsquery"
_POLICY = f"""
ALTER TABLE chat_searchentry ENABLE ROW LEVEL SECURITY;
ALTER TABLE chat_searchentry FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON chat_searchentry
    USING (terms @@ ({_SCOPE} && {_SEARCH})) WITH CHECK (terms @@ {_SCOPE});
"""
_UNDO_POLICY = """
DROP POLICY own_rows ON chat_searchentry;
ALTER TABLE chat_searchentry NO FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_searchentry DISABLE ROW LEVEL SECURITY;
"""


def _create_functions(apps: Any, schema_editor: Any) -> None:
    """lower() by Unicode where the server has a collation that does so, whatever its locale."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT collname FROM pg_collation WHERE collname = ANY(%s)", [list(_COLLATIONS)]
        )
        known = {row[0] for row in cursor.fetchall()}
        collation = next((name for name in _COLLATIONS if name in known), "default")
        small = f'lower(normalize(body, NFKD) COLLATE "{collation}")'
        same = f"regexp_replace({small}, '[{DROPPED}]', '', 'g')"
        for letter, other in SAME.items():
            same = f"replace({same}, '{letter}', '{other}')"
        cursor.execute(_FUNCTIONS.format(same=same))


def _drop_functions(apps: Any, schema_editor: Any) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_DROP_FUNCTIONS)


class Migration(migrations.Migration):
    dependencies = [("chat", "0007_library")]

    operations = [
        migrations.RunPython(_create_functions, _drop_functions),
        migrations.RunSQL(_TABLE, _UNDO_TABLE),
        migrations.RunSQL(_BACKFILL, migrations.RunSQL.noop),
        migrations.RunSQL(_POLICY, _UNDO_POLICY),
    ]
