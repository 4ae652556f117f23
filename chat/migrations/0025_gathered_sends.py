"""What is asked and saved where new chats begin, of many people at once.

`chat_before_sends(asked, moment, today)` tells for each {"owner", "key", "client_id"} what decides
whether an answer may begin; `chat_save_sends(given)` saves for each {"owner", "conversation",
"messages", "generations", "reservations"} its rows, as the tables have them. Both look at each
person's rows in that person's own scope: row-level security binds what is read and written of one as
if nobody else had asked. The caller holds the rows of all users that are named.

`chat_spent` and `chat_num_running` are what one user has spent and holds, and how many of their answers
are being written.
"""

from django.db import migrations

SPENT = """
CREATE FUNCTION chat_spent(
    owner bigint, key bigint, moment timestamptz, today date,
    OUT day_tokens bigint, OUT month_tokens bigint, OUT month_cost numeric, OUT key_day_tokens bigint,
    OUT held_tokens bigint, OUT held_cost numeric, OUT key_held_tokens bigint
) LANGUAGE sql STABLE AS $function$
    WITH spent AS (
        SELECT prompt_tokens + completion_tokens AS tokens, cost, day, api_key_id FROM chat_usage
        WHERE owner_id = owner AND day >= date_trunc('month', today::timestamp)::date
    ), held AS (
        SELECT tokens, cost, api_key_id FROM chat_reservation
        WHERE owner_id = owner AND expires_at > moment
            AND (alive_until IS NULL OR alive_until > moment)
    )
    SELECT
        (SELECT coalesce(sum(tokens) FILTER (WHERE day = today), 0) FROM spent),
        (SELECT coalesce(sum(tokens), 0) FROM spent),
        (SELECT coalesce(sum(cost), 0) FROM spent),
        (SELECT coalesce(sum(tokens) FILTER (WHERE day = today AND api_key_id = key), 0) FROM spent),
        (SELECT coalesce(sum(tokens), 0) FROM held),
        (SELECT coalesce(sum(cost), 0) FROM held),
        (SELECT coalesce(sum(tokens) FILTER (WHERE api_key_id = key), 0) FROM held)
$function$;
"""
NUM_RUNNING = """
CREATE FUNCTION chat_num_running(owner bigint, moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $function$
    SELECT (
        SELECT count(*) FROM chat_generation AS run
        JOIN chat_conversation AS conversation ON conversation.id = run.conversation_id
        WHERE conversation.owner_id = owner AND run.status IN ('queued', 'prefill', 'decode')
    ) + (
        SELECT count(*) FROM chat_reservation WHERE owner_id = owner AND alive_until > moment
    )
$function$;
"""
BEFORE_SENDS = """
CREATE FUNCTION chat_before_sends(asked jsonb, moment timestamptz, today date)
RETURNS TABLE (is_sent boolean, num_running bigint, personalisation jsonb, spent jsonb)
LANGUAGE plpgsql AS $function$
DECLARE
    scope_before text := coalesce(current_setting('vitrine.scope', true), '');
    one record;
BEGIN
    FOR one IN SELECT * FROM jsonb_to_recordset(asked) AS given (owner bigint, key bigint, client_id text)
    LOOP
        PERFORM set_config('vitrine.scope', 'user:' || one.owner, true);
        is_sent := EXISTS (
            SELECT 1 FROM chat_message AS message
            JOIN chat_conversation AS conversation ON conversation.id = message.conversation_id
            WHERE conversation.owner_id = one.owner AND message.client_id = one.client_id
        );
        num_running := chat_num_running(one.owner, moment);
        personalisation := (
            SELECT to_jsonb(own) FROM chat_personalisation AS own WHERE own.owner_id = one.owner
        );
        spent := (SELECT to_jsonb(sums) FROM chat_spent(one.owner, one.key, moment, today) AS sums);
        RETURN NEXT;
    END LOOP;
    PERFORM set_config('vitrine.scope', scope_before, true);
END
$function$;
"""
SAVE_SENDS = """
CREATE FUNCTION chat_save_sends(given jsonb) RETURNS void LANGUAGE plpgsql AS $function$
DECLARE
    scope_before text := coalesce(current_setting('vitrine.scope', true), '');
    one record;
BEGIN
    FOR one IN
        SELECT * FROM jsonb_to_recordset(given) AS each (
            owner bigint, conversation jsonb, messages jsonb, generations jsonb, reservations jsonb
        )
    LOOP
        PERFORM set_config('vitrine.scope', 'user:' || one.owner, true);
        INSERT INTO chat_conversation
            SELECT * FROM jsonb_populate_record(NULL::chat_conversation, one.conversation);
        INSERT INTO chat_message
            SELECT * FROM jsonb_populate_recordset(NULL::chat_message, one.messages);
        INSERT INTO chat_generation
            SELECT * FROM jsonb_populate_recordset(NULL::chat_generation, one.generations);
        INSERT INTO chat_reservation
            SELECT * FROM jsonb_populate_recordset(NULL::chat_reservation, one.reservations);
    END LOOP;
    PERFORM set_config('vitrine.scope', scope_before, true);
END
$function$;
"""


class Migration(migrations.Migration):

    dependencies = [("chat", "0024_assistant_collections")]

    operations = [
        migrations.RunSQL(SPENT, "DROP FUNCTION chat_spent(bigint, bigint, timestamptz, date)"),
        migrations.RunSQL(NUM_RUNNING, "DROP FUNCTION chat_num_running(bigint, timestamptz)"),
        migrations.RunSQL(
            BEFORE_SENDS, "DROP FUNCTION chat_before_sends(jsonb, timestamptz, date)"
        ),
        migrations.RunSQL(SAVE_SENDS, "DROP FUNCTION chat_save_sends(jsonb)"),
    ]
