"""What is remembered of users, what a chat copies of it at its start, and the same where many people's
chats begin at once (`gathered_sends`)."""

from importlib import import_module

import chat.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_rls = import_module("chat.migrations.0002_row_level_security")
_sends = import_module("chat.migrations.0025_gathered_sends")
_DROP = "DROP FUNCTION chat_before_sends(jsonb, timestamptz, date);"
BEFORE_SENDS = """
CREATE FUNCTION chat_before_sends(asked jsonb, moment timestamptz, today date)
RETURNS TABLE (is_sent boolean, num_running bigint, personalisation jsonb, memories jsonb, spent jsonb)
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
        memories := coalesce((
            SELECT jsonb_agg(known.text ORDER BY known.id)
            FROM chat_memory AS known WHERE known.owner_id = one.owner
        ), '[]');
        spent := (SELECT to_jsonb(sums) FROM chat_spent(one.owner, one.key, moment, today) AS sums);
        RETURN NEXT;
    END LOOP;
    PERFORM set_config('vitrine.scope', scope_before, true);
END
$function$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0034_announcement"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="personalisation",
            name="uses_memories",
            field=models.BooleanField(default=True),
        ),
        migrations.AddField(
            model_name="conversation",
            name="memory",
            field=models.TextField(blank=True, default=""),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="conversation",
            name="remembers",
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name="Memory",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("text", models.CharField(max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chat.conversation",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "memories",
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "text"), name="memory_once")
                ],
            },
        ),
        _rls._protect("chat_memory", _rls._VISIBLE),
        migrations.RunSQL(_DROP + BEFORE_SENDS, _DROP + _sends.BEFORE_SENDS),
    ]
