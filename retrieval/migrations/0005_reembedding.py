"""Which embedding model takes over from the others, and who gives passages its vectors.

Models are everybody's to read, since a question is embedded by each of them; with one go all of its
vectors, so that they are written in the system's scope alone.
"""

import django.utils.timezone
from django.db import migrations, models

_PROTECT = """
ALTER TABLE retrieval_embeddingmodel ENABLE ROW LEVEL SECURITY;
ALTER TABLE retrieval_embeddingmodel FORCE ROW LEVEL SECURITY;
CREATE POLICY readers ON retrieval_embeddingmodel FOR SELECT USING (true);
CREATE POLICY inserters ON retrieval_embeddingmodel
    FOR INSERT WITH CHECK ((SELECT retrieval_is_system()));
CREATE POLICY updaters ON retrieval_embeddingmodel
    FOR UPDATE USING ((SELECT retrieval_is_system())) WITH CHECK ((SELECT retrieval_is_system()));
CREATE POLICY deleters ON retrieval_embeddingmodel
    FOR DELETE USING ((SELECT retrieval_is_system()));
"""
_EXPOSE = """
DROP POLICY readers ON retrieval_embeddingmodel;
DROP POLICY inserters ON retrieval_embeddingmodel;
DROP POLICY updaters ON retrieval_embeddingmodel;
DROP POLICY deleters ON retrieval_embeddingmodel;
ALTER TABLE retrieval_embeddingmodel NO FORCE ROW LEVEL SECURITY;
ALTER TABLE retrieval_embeddingmodel DISABLE ROW LEVEL SECURITY;
"""


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0004_vector_stores")]

    operations = [
        migrations.AddField("embeddingmodel", "configured_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "embeddingmodel", "lease_owner", models.CharField(blank=True, max_length=64)
        ),
        migrations.AddField(
            "embeddingmodel",
            "lease_until",
            models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.RunSQL(_PROTECT, _EXPOSE),
    ]
