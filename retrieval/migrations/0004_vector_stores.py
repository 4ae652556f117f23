"""What programs know of collections and documents as vector stores and their files."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import retrieval.ids

_READABLE = "collection_id IN (SELECT id FROM retrieval_collection)"
_WRITABLE = """
    collection_id IN (
        SELECT c.id FROM retrieval_collection c
        WHERE (SELECT retrieval_is_system()) OR c.owner_id = (SELECT retrieval_me())
            OR c.id IN (SELECT a.collection_id FROM retrieval_access a WHERE a.may_write))
"""


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0003_evaluation")]

    operations = [
        migrations.AddField("collection", "metadata", models.JSONField(default=dict)),
        migrations.AddField(
            "collection", "expires_after_days", models.PositiveSmallIntegerField(null=True)
        ),
        migrations.AddField(
            "collection", "last_active_at", models.DateTimeField(default=django.utils.timezone.now)
        ),
        migrations.CreateModel(
            name="FileBatch",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=retrieval.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                ("is_cancelled", models.BooleanField(default=False)),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="retrieval.collection",
                    ),
                ),
            ],
        ),
        migrations.AddField("document", "file_id", models.UUIDField(null=True)),
        migrations.AddField("document", "attributes", models.JSONField(default=dict)),
        migrations.AddField(
            "document",
            "batch",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="documents",
                to="retrieval.filebatch",
            ),
        ),
        migrations.AddField("document", "chunk_tokens", models.PositiveIntegerField(null=True)),
        migrations.AddField(
            "document", "chunk_overlap_tokens", models.PositiveIntegerField(null=True)
        ),
        migrations.AddConstraint(
            "document",
            models.UniqueConstraint(
                fields=("collection", "file_id"), name="document_of_file_once"
            ),
        ),
        migrations.RunSQL(
            sql=f"""
                ALTER TABLE retrieval_filebatch ENABLE ROW LEVEL SECURITY;
                ALTER TABLE retrieval_filebatch FORCE ROW LEVEL SECURITY;
                CREATE POLICY readers ON retrieval_filebatch FOR SELECT USING ({_READABLE});
                CREATE POLICY inserters ON retrieval_filebatch FOR INSERT WITH CHECK ({_WRITABLE});
                CREATE POLICY updaters ON retrieval_filebatch FOR UPDATE
                    USING ({_WRITABLE}) WITH CHECK ({_WRITABLE});
                CREATE POLICY deleters ON retrieval_filebatch FOR DELETE USING ({_WRITABLE});
            """,
            reverse_sql="""
                DROP POLICY readers ON retrieval_filebatch;
                DROP POLICY inserters ON retrieval_filebatch;
                DROP POLICY updaters ON retrieval_filebatch;
                DROP POLICY deleters ON retrieval_filebatch;
                ALTER TABLE retrieval_filebatch NO FORCE ROW LEVEL SECURITY;
                ALTER TABLE retrieval_filebatch DISABLE ROW LEVEL SECURITY;
            """,
        ),
    ]
