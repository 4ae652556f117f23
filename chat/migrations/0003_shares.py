"""Share links, and the one path by which somebody other than the owner reads a branch.

`chat_read_share(token_hash)` returns what a link shows, as JSON, or NULL for a token that is unknown,
revoked or expired. Whoever calls it needs no right to the rows themselves: the policies of the other
tables stay as they are, and nothing but what the function hands out is ever visible to a reader.
Parts are let through by name, so that a kind of part that comes later is not shared by accident.
"""

import chat.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_OWN = """
    current_setting('vitrine.scope', true) = 'system'
    OR current_setting('vitrine.scope', true) = 'user:' || owner_id
"""

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
        WHERE s.token_hash = wanted AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp());
    IF FOUND THEN
        -- As the owner from here on: a link to what is not the owner's shows nothing.
        PERFORM set_config('vitrine.scope', 'user:' || share.owner_id, true);
        SELECT c.title INTO chat_title FROM chat_conversation c WHERE c.id = share.conversation_id;
        IF FOUND THEN
            leaf := share.message_id;
            IF share.kind = 'live' THEN
                WITH RECURSIVE below AS (
                    SELECT m.id, m.created_at FROM chat_message m
                        WHERE m.id = share.message_id AND m.conversation_id = share.conversation_id
                    UNION
                    SELECT m.id, m.created_at FROM chat_message m JOIN below ON m.parent_id = below.id
                        WHERE m.status <> 'running'
                )
                SELECT b.id INTO leaf FROM below b ORDER BY b.created_at DESC, b.id DESC LIMIT 1;
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
                'messages', jsonb_agg(jsonb_build_object(
                    'role', b.role,
                    'status', b.status,
                    'model', b.model,
                    'parts', (
                        SELECT coalesce(jsonb_agg(
                            CASE WHEN share.with_steps THEN part
                            ELSE jsonb_build_object('type', 'text', 'text', part->'text') END
                            ORDER BY place), '[]')
                        FROM jsonb_array_elements(b.parts) WITH ORDINALITY AS parts(part, place)
                        WHERE part->>'type' = 'text' OR (share.with_steps AND part->>'type'
                            IN ('reasoning', 'tool_call', 'tool_result'))
                    )
                ) ORDER BY b.height DESC)
            ) INTO shown FROM branch b HAVING count(*) > 0;
        END IF;
    END IF;
    PERFORM set_config('vitrine.scope', scope_before, true);
    RETURN shown;
END
$function$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0002_row_level_security"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Share",
            fields=[
                ("id", models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("kind", models.CharField(choices=[("snapshot", "Snapshot"), ("live", "Live")], max_length=16)),
                ("title", models.CharField(blank=True, max_length=200)),
                ("shown_name", models.CharField(blank=True, max_length=120)),
                ("with_steps", models.BooleanField(default=False)),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("conversation", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="shares", to="chat.conversation")),
                ("message", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="shares", to="chat.message")),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="shares", to=settings.AUTH_USER_MODEL)),
            ],
            options={"indexes": [models.Index(fields=["owner", "-id"], name="share_recent")]},
        ),
        migrations.RunSQL(
            sql=f"""
                ALTER TABLE chat_share ENABLE ROW LEVEL SECURITY;
                ALTER TABLE chat_share FORCE ROW LEVEL SECURITY;
                CREATE POLICY own_rows ON chat_share USING ({_OWN}) WITH CHECK ({_OWN});
            """,
            reverse_sql="DROP POLICY own_rows ON chat_share;",
        ),
        migrations.RunSQL(sql=READ_SHARE, reverse_sql="DROP FUNCTION chat_read_share(text);"),
    ]
