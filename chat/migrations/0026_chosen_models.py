import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0025_gathered_sends"),
    ]

    operations = [
        migrations.AddField(
            model_name="personalisation",
            name="default_model",
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AddField(
            model_name="personalisation",
            name="pinned_models",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=200), blank=True, default=list, size=None
            ),
        ),
    ]
