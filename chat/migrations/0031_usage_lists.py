"""The ledger by day and by model, of everybody: what the console asks for (see moderation's migration
`decision_lists` for why these are not built concurrently)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0030_long_vectors")]

    operations = [
        migrations.AddIndex(
            model_name="usage",
            index=models.Index(fields=["-day", "owner", "model", "-id"], name="usage_recent"),
        ),
        migrations.AddIndex(
            model_name="usage",
            index=models.Index(fields=["model"], name="usage_of_model"),
        ),
    ]
