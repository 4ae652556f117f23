"""Answers that no run stands for count by what they hold."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0014_model_price'),
    ]

    operations = [
        migrations.AddField(
            model_name='reservation',
            name='alive_until',
            field=models.DateTimeField(null=True),
        ),
    ]
