"""Responses of /v1/responses, and answers that are given again to the same Idempotency-Key."""

from importlib import import_module

import chat.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_rls = import_module("chat.migrations.0002_row_level_security")


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0012_usage'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='StoredResponse',
            fields=[
                ('id', models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('thread', models.UUIDField(db_index=True)),
                ('previous', models.UUIDField(null=True)),
                ('input', models.JSONField()),
                ('body', models.JSONField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'created_at'], name='stored_response_oldest')],
            },
        ),
        migrations.CreateModel(
            name='KeptAnswer',
            fields=[
                ('id', models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('route', models.CharField(max_length=200)),
                ('key', models.CharField(max_length=255)),
                ('request_hash', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('body', models.BinaryField(default=bytes)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'created_at'], name='kept_answer_oldest')],
                'constraints': [models.UniqueConstraint(fields=('owner', 'route', 'key'), name='kept_answer_once')],
            },
        ),
        *(_rls._protect(table, _rls._VISIBLE) for table in ("chat_storedresponse", "chat_keptanswer")),
    ]
