"""What was measured of retrieval: the operators', so seen in the system's scope alone."""

import django.utils.timezone
from django.db import migrations, models

import retrieval.ids


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0002_protection")]

    operations = [
        migrations.CreateModel(
            name="Evaluation",
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
                ("run", models.UUIDField()),
                ("set_name", models.CharField(max_length=255, verbose_name="set")),
                ("set_sha256", models.CharField(max_length=64, verbose_name="SHA-256 of the set")),
                ("embedding_model", models.CharField(max_length=200)),
                ("way", models.CharField(max_length=16)),
                ("max_tokens", models.PositiveIntegerField(verbose_name="tokens of a chunk")),
                ("overlap_tokens", models.PositiveIntegerField(verbose_name="of them shared")),
                ("num_questions", models.PositiveIntegerField(verbose_name="questions")),
                ("scores", models.JSONField()),
                ("took_s", models.FloatField(verbose_name="seconds")),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="when"),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["-created_at"], name="evaluation_recent")],
            },
        ),
        migrations.RunSQL(
            sql="""
                ALTER TABLE retrieval_evaluation ENABLE ROW LEVEL SECURITY;
                ALTER TABLE retrieval_evaluation FORCE ROW LEVEL SECURITY;
                CREATE POLICY operators ON retrieval_evaluation
                    USING (retrieval_is_system()) WITH CHECK (retrieval_is_system());
            """,
            reverse_sql="""
                DROP POLICY operators ON retrieval_evaluation;
                ALTER TABLE retrieval_evaluation NO FORCE ROW LEVEL SECURITY;
                ALTER TABLE retrieval_evaluation DISABLE ROW LEVEL SECURITY;
            """,
        ),
    ]
