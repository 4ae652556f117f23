"""Prompts that are sent by themselves, each seen by its owner alone."""

from importlib import import_module

import chat.ids
import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

_rls = import_module("chat.migrations.0002_row_level_security")


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0036_sealed_tokens'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Schedule',
            fields=[
                ('id', models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80)),
                ('text', models.TextField()),
                ('model', models.CharField(blank=True, max_length=200)),
                ('assistant_id', models.UUIDField(blank=True, null=True)),
                ('is_one_chat', models.BooleanField(default=True)),
                ('repeats', models.CharField(choices=[('once', 'Once'), ('daily', 'Every day'), ('weekly', 'On days of the week'), ('monthly', 'Every month')], max_length=8)),
                ('at', models.TimeField()),
                ('zone', models.CharField(max_length=64)),
                ('on', models.DateField(blank=True, null=True)),
                ('weekdays', django.contrib.postgres.fields.ArrayField(base_field=models.PositiveSmallIntegerField(), blank=True, default=list, size=None)),
                ('day', models.PositiveSmallIntegerField(default=1)),
                ('is_on', models.BooleanField(default=True)),
                ('next_at', models.DateTimeField(blank=True, null=True)),
                ('wait_until', models.DateTimeField(default=django.utils.timezone.now)),
                ('num_tries', models.PositiveSmallIntegerField(default=0)),
                ('last_at', models.DateTimeField(blank=True, null=True)),
                ('last_problem', models.CharField(blank=True, max_length=300)),
                ('num_failed', models.PositiveSmallIntegerField(default=0)),
                ('version', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('conversation', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chat.conversation')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'name'], name='schedule_by_name'), models.Index(condition=models.Q(('is_on', True)), fields=['next_at'], name='schedule_due')],
            },
        ),
        _rls._protect("chat_schedule", _rls._VISIBLE),
    ]
