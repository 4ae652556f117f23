"""As those of passages (retrieval/migrations/0006_long_vectors.py): questions and messages have vectors by
the same model."""

from django.db import migrations

_STORE = """
ALTER TABLE {table} ALTER COLUMN vector SET STORAGE EXTERNAL;
ALTER TABLE {table} SET (toast_tuple_target = 8160);
"""


class Migration(migrations.Migration):
    dependencies = [("chat", "0029_links_of_suspended")]

    operations = [
        migrations.RunSQL(_STORE.format(table=table), migrations.RunSQL.noop)
        for table in ("chat_cachedanswer", "chat_messagevector")
    ]
