"""Vectors of over 4,000 dimensions fill more than a page, and go elsewhere than the rest of their row; all
others stay where they are, so that comparing them one by one is fast."""

from django.db import migrations

_STORE = """
ALTER TABLE retrieval_embedding ALTER COLUMN vector SET STORAGE EXTERNAL;
ALTER TABLE retrieval_embedding SET (toast_tuple_target = 8160);
"""


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0005_reembedding")]

    operations = [migrations.RunSQL(_STORE, migrations.RunSQL.noop)]
