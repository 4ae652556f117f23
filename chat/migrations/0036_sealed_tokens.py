"""Tokens of share links whose SECRET_KEY was given up, sealed with the one after it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0035_memories")]

    operations = [
        migrations.AddField(
            model_name="share",
            name="sealed_token",
            field=models.TextField(blank=True, default="", editable=False),
        ),
    ]
