"""`moderation_keep_decisions(given)` writes decisions about many people's texts, as the table has them, in
one statement. Each person's are written in that person's own scope, so row-level security binds them
as if they were written alone.
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


class Migration(migrations.Migration):

    dependencies = [("moderation", "0002_suspension")]

    operations = [
        migrations.RunSQL(KEEP_DECISIONS, "DROP FUNCTION moderation_keep_decisions(jsonb)")
    ]
