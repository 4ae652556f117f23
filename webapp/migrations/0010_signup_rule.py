"""The sign-up policy of the console."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0009_token_family'),
    ]

    operations = [
        migrations.CreateModel(
            name='SignupRule',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('mode', models.CharField(choices=[('open', 'everybody'), ('domain', 'whose address is of these domains'), ('invitation', 'who has an invitation'), ('closed', 'nobody')], max_length=16, verbose_name='who may sign up')),
                ('domains', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=253), blank=True, default=list, size=None)),
            ],
            options={
                'verbose_name': 'sign-up policy',
                'verbose_name_plural': 'sign-up policy',
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='signup_rule_only_one')],
            },
        ),
    ]
