"""Which documents came with a message: those go when no message names them any more."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0007_kinds_of_versions"),
    ]

    operations = [
        migrations.AddField(
            model_name="document",
            name="is_attached",
            field=models.BooleanField(default=False),
        ),
    ]
