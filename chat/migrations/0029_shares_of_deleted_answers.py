"""A link to an answer that was deleted shows nothing, from that moment on and not only once it is purged;
nor does one to an answer that keeps its place."""

from importlib import import_module

from django.db import migrations

_BEFORE = import_module("chat.migrations.0010_message_tree").READ_SHARE
_CHAT = "FROM chat_conversation c WHERE c.id = share.conversation_id"
READ_SHARE = _BEFORE.replace(
    _CHAT,
    f"""{_CHAT} AND EXISTS (
            SELECT 1 FROM chat_message m WHERE m.id = share.message_id AND m.deleted_at IS NULL
        )""",
)


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0028_places_say_nothing"),
    ]

    operations = [migrations.RunSQL(sql=READ_SHARE, reverse_sql=_BEFORE)]
