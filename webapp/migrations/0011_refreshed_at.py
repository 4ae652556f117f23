"""When a family's refresh token was last used."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webapp", "0010_signup_rule")]

    operations = [
        migrations.AddField(
            model_name="signin",
            name="refreshed_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
