"""Messages by what they name, for files that go with the last message that names them.

Of files that are older than this, those are taken for attached that lie where attached files do, and that a
message names. What no message names may have been brought there by hand, and stays.
"""

from django.db import migrations, models

_MARK = """
SELECT set_config('vitrine.scope', 'system', true), set_config('vitrine.deleted', 'shown', true);
UPDATE retrieval_document SET is_attached = true
    FROM retrieval_collection c WHERE c.id = collection_id AND c.is_for_chats
        AND retrieval_document.id::text IN (
            SELECT named->>'id'
            FROM chat_message, jsonb_array_elements(sources->'documents') AS named
            WHERE sources IS NOT NULL);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0031_usage_lists"),
        ("retrieval", "0008_attached"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(sources__isnull=False),
                fields=["conversation"],
                name="message_sources",
            ),
        ),
        migrations.RunSQL(_MARK, migrations.RunSQL.noop),
    ]
