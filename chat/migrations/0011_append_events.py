"""`chat_append_events(news, owner, until)` logs what many runs have to say in one statement.

`news` is a list of {"id", "first", "last", "payloads", "status", "revision", "trace", "turns"}: of each
run its events numbered from `first` to `last`, what they change in its row (null: nothing), and the
turns that begin with them. It returns the runs that `owner` still writes; for the others nothing is
stored. The runs are of several people, so it looks at the rows as the system: that a caller names the
holder of their leases, which changes with each process and is told nobody, is what lets it in.
"""

from django.db import migrations

APPEND_EVENTS = """
CREATE FUNCTION chat_append_events(news jsonb, owner text, until timestamptz)
RETURNS SETOF uuid LANGUAGE plpgsql AS $function$
DECLARE
    scope_before text := coalesce(current_setting('vitrine.scope', true), '');
BEGIN
    PERFORM set_config('vitrine.scope', 'system', true);
    RETURN QUERY WITH held AS (
        UPDATE chat_generation AS generation
        SET seq = given.last, lease_until = until,
            status = coalesce(given.status, generation.status),
            model_revision = coalesce(given.revision, generation.model_revision),
            trace = coalesce(given.trace, generation.trace)
        FROM jsonb_to_recordset(news) AS given (
            id uuid, first int, last int, payloads jsonb, status text, revision text, trace jsonb,
            turns jsonb
        )
        WHERE generation.id = given.id AND generation.lease_owner = owner
            AND generation.status IN ('queued', 'prefill', 'decode')
        RETURNING generation.id AS run, given.first, given.payloads, given.turns
    ), written AS (
        INSERT INTO chat_generationevent (generation_id, seq, payload)
        SELECT held.run, held.first - 1 + line.number, line.payload
        FROM held, jsonb_array_elements(held.payloads) WITH ORDINALITY AS line (payload, number)
    ), begun AS (
        INSERT INTO chat_generationturn (generation_id, index, params, prompt_ids, output_ids)
        SELECT held.run, turn.index, turn.params, turn.prompt_ids, '{}'
        FROM held, jsonb_to_recordset(held.turns)
            AS turn (index smallint, params jsonb, prompt_ids int[])
        ON CONFLICT (generation_id, index)
            DO UPDATE SET params = excluded.params, prompt_ids = excluded.prompt_ids
    )
    SELECT held.run FROM held;
    PERFORM set_config('vitrine.scope', scope_before, true);
END
$function$;
"""


class Migration(migrations.Migration):

    dependencies = [("chat", "0010_message_tree")]

    operations = [
        migrations.RunSQL(
            APPEND_EVENTS, "DROP FUNCTION chat_append_events(jsonb, text, timestamptz)"
        )
    ]
