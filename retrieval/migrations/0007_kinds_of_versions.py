from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0006_long_vectors")]

    operations = [
        migrations.AddField(
            "version", "media_type", models.CharField(blank=True, default="", max_length=100),
            preserve_default=False,
        ),
    ]
