"""Every answer keeps its trace, and what its engine turns read and wrote, as rows of their owner."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

_OWN = "EXISTS (SELECT 1 FROM chat_generation g WHERE g.id = generation_id)"
# Answers that are being written during the upgrade are resumed from here.
_MOVE_PROMPTS = """
    SET LOCAL vitrine.scope = 'system';
    INSERT INTO chat_generationturn (generation_id, index, params, prompt_ids, output_ids)
    SELECT id, 0, '{}', prompt_ids, '{}' FROM chat_generation
    WHERE status IN ('queued', 'prefill', 'decode') AND cardinality(prompt_ids) > 0;
"""


class Migration(migrations.Migration):
    dependencies = [("chat", "0003_shares")]

    operations = [
        migrations.AddField("generation", "trace", models.JSONField(default=dict)),
        migrations.CreateModel(
            name="GenerationTurn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("index", models.PositiveSmallIntegerField()),
                ("params", models.JSONField(default=dict)),
                (
                    "prompt_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                (
                    "output_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), default=list, size=None
                    ),
                ),
                (
                    "generation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="turns",
                        to="chat.generation",
                    ),
                ),
            ],
            options={
                "ordering": ["index"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("generation", "index"), name="generation_turn_index"
                    )
                ],
            },
        ),
        migrations.RunSQL(
            sql=f"""
                ALTER TABLE chat_generationturn ENABLE ROW LEVEL SECURITY;
                ALTER TABLE chat_generationturn FORCE ROW LEVEL SECURITY;
                CREATE POLICY own_rows ON chat_generationturn USING ({_OWN}) WITH CHECK ({_OWN});
            """,
            reverse_sql="""
                DROP POLICY own_rows ON chat_generationturn;
                ALTER TABLE chat_generationturn NO FORCE ROW LEVEL SECURITY;
                ALTER TABLE chat_generationturn DISABLE ROW LEVEL SECURITY;
            """,
        ),
        migrations.RunSQL(_MOVE_PROMPTS, migrations.RunSQL.noop),
        migrations.RemoveField("generation", "prompt_ids"),
    ]
