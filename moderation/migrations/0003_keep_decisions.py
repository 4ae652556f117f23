"""`moderation_keep_decisions(given)` writes decisions about many people's texts, as the table has them, in
one statement; `moderation_with_strikes(users, since)` tells who of many people has strikes that count.
What is one person's is read and written in that person's own scope, so row-level security binds it as
if nobody else were asked about.
"""

from django.db import migrations

KEEP_DECISIONS = """
CREATE FUNCTION moderation_keep_decisions(given jsonb) RETURNS void LANGUAGE plpgsql AS $function$
DECLARE
    scope_before text := coalesce(current_setting('vitrine.scope', true), '');
    one jsonb;
BEGIN
    FOR one IN SELECT * FROM jsonb_array_elements(given)
    LOOP
        PERFORM set_config('vitrine.scope', 'user:' || (one ->> 'owner_id'), true);
        INSERT INTO moderation_decision
            SELECT * FROM jsonb_populate_record(NULL::moderation_decision, one);
    END LOOP;
    PERFORM set_config('vitrine.scope', scope_before, true);
END
$function$;
"""
WITH_STRIKES = """
CREATE FUNCTION moderation_with_strikes(users bigint[], since timestamptz) RETURNS SETOF bigint
LANGUAGE plpgsql AS $function$
DECLARE
    scope_before text := coalesce(current_setting('vitrine.scope', true), '');
    one bigint;
BEGIN
    FOREACH one IN ARRAY users
    LOOP
        PERFORM set_config('vitrine.scope', 'user:' || one, true);
        IF EXISTS (
            SELECT 1 FROM moderation_strike
            WHERE owner_id = one AND lifted_at IS NULL AND created_at > since
        ) THEN
            RETURN NEXT one;
        END IF;
    END LOOP;
    PERFORM set_config('vitrine.scope', scope_before, true);
END
$function$;
"""


class Migration(migrations.Migration):

    dependencies = [("moderation", "0002_suspension")]

    operations = [
        migrations.RunSQL(KEEP_DECISIONS, "DROP FUNCTION moderation_keep_decisions(jsonb)"),
        migrations.RunSQL(
            WITH_STRIKES, "DROP FUNCTION moderation_with_strikes(bigint[], timestamptz)"
        ),
    ]
