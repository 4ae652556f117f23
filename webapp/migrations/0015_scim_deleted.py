"""Accounts that the directory has deleted, and that wait for what they share to be handed over."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0014_invitation_group'),
    ]

    operations = [
        migrations.AddField(
            model_name='scimperson',
            name='deleted_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
