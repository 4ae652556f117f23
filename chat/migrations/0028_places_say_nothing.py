"""Messages that were purged before, and keep their place for the replies below them, lose also what
they were asked and written from."""

from django.db import migrations

_FORGET = """
SELECT set_config('vitrine.scope', 'system', true);
UPDATE chat_message SET sources = NULL, found = NULL, from_cache = NULL, left_out = NULL
    WHERE deleted_at IS NOT NULL AND deletion = ''
        AND num_nonnulls(sources, found, from_cache, left_out) > 0;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0027_import_attempts"),
    ]

    operations = [migrations.RunSQL(_FORGET, migrations.RunSQL.noop)]
