"""A sign-in may be that of a program with tokens."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webapp", "0008_sign_in")]

    operations = [
        migrations.AddField(
            model_name="signin",
            name="token_family",
            field=models.UUIDField(editable=False, null=True, unique=True),
        ),
        migrations.AddField(
            model_name="signin",
            name="refresh_number",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
    ]
