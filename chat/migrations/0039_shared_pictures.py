"""A link shows the pictures that its answers have drawn, also where it shows no other steps."""

from importlib import import_module

from django.db import migrations

_READ_SHARE_BEFORE = import_module("chat.migrations.0029_links_of_suspended").READ_SHARE
READ_SHARE = """
CREATE OR REPLACE FUNCTION chat_read_share(wanted text) RETURNS jsonb LANGUAGE plpgsql AS $function$
DECLARE
    scope_before text := coalesce(current_setting('vitrine.scope', true), '');
    share chat_share%ROWTYPE;
    chat_title text;
    leaf uuid;
    shown jsonb;
BEGIN
    PERFORM set_config('vitrine.scope', 'system', true);
    SELECT s.* INTO share FROM chat_share s
        JOIN webapp_user u ON u.id = s.owner_id AND u.is_active
        WHERE s.token_hash = wanted AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp());
    IF FOUND THEN
        -- As the owner from here on: a link to what is not the owner's shows nothing.
        PERFORM set_config('vitrine.scope', 'user:' || share.owner_id, true);
        SELECT c.title INTO chat_title FROM chat_conversation c
            WHERE c.id = share.conversation_id AND EXISTS (
                SELECT 1 FROM chat_message m WHERE m.id = share.message_id AND m.deleted_at IS NULL
            );
        IF FOUND THEN
            leaf := share.message_id;
            IF share.kind = 'live' THEN
                WITH RECURSIVE below AS (
                    SELECT m.id, m.created_at, m.deleted_at FROM chat_message m
                        WHERE m.id = share.message_id AND m.conversation_id = share.conversation_id
                    UNION
                    SELECT m.id, m.created_at, m.deleted_at FROM chat_message m
                        JOIN below ON m.parent_id = below.id WHERE m.status <> 'running'
                )
                SELECT b.id INTO leaf FROM below b WHERE b.deleted_at IS NULL
                    ORDER BY b.created_at DESC, b.id DESC LIMIT 1;
            END IF;
            WITH RECURSIVE branch AS (
                SELECT m.*, 0 AS height FROM chat_message m
                    WHERE m.id = leaf AND m.conversation_id = share.conversation_id
                UNION ALL
                SELECT m.*, branch.height + 1 FROM chat_message m
                    JOIN branch ON m.id = branch.parent_id
            )
            SELECT jsonb_build_object(
                'kind', share.kind,
                'title', CASE share.kind WHEN 'live' THEN chat_title ELSE share.title END,
                'shown_name', share.shown_name,
                'created_at', share.created_at,
                'with_steps', share.with_steps,
                'messages', jsonb_agg(jsonb_build_object(
                    'role', b.role,
                    'status', b.status,
                    'model', b.model,
                    'parts', (
                        SELECT coalesce(jsonb_agg(
                            CASE WHEN share.with_steps THEN part
                            WHEN part->>'type' = 'text'
                                THEN jsonb_build_object('type', 'text', 'text', part->'text')
                            WHEN part->>'type' = 'tool_call'
                                THEN jsonb_build_object('type', 'tool_call', 'id', part->'id',
                                    'name', part->'name', 'arguments', part->'arguments')
                            ELSE jsonb_build_object('type', 'tool_result', 'id', part->'id',
                                'content', part->'content', 'is_error', part->'is_error') END
                            ORDER BY place), '[]')
                        FROM jsonb_array_elements(b.parts) WITH ORDINALITY AS parts(part, place)
                        WHERE part->>'type' = 'text' OR (share.with_steps AND part->>'type'
                            IN ('reasoning', 'tool_call', 'tool_result'))
                            -- Pictures that it has drawn are what an answer says.
                            OR (part->>'type' IN ('tool_call', 'tool_result') AND part->>'id' IN (
                                SELECT call->>'id' FROM jsonb_array_elements(b.parts) AS calls(call)
                                WHERE call->>'type' = 'tool_call'
                                GROUP BY call->>'id' HAVING bool_and(call->>'name' = 'create_image')
                            ))
                    )
                ) ORDER BY b.height DESC)
            ) INTO shown FROM branch b WHERE b.deleted_at IS NULL HAVING count(*) > 0;
        END IF;
    END IF;
    PERFORM set_config('vitrine.scope', scope_before, true);
    RETURN shown;
END
$function$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ("chat", "0038_unread_chats"),
    ]

    operations = [
        migrations.RunSQL(sql=READ_SHARE, reverse_sql=_READ_SHARE_BEFORE),
    ]
