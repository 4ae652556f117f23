"""Which texts a decision was about, as hashes: a reviewer's word holds for the same text."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("moderation", "0003_keep_decisions")]

    operations = [
        migrations.AddField(
            model_name="decision",
            name="text_hashes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=64), null=True, editable=False, size=None
            ),
        ),
    ]
