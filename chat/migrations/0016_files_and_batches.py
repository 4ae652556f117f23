"""Files of /v1/files, and batches of /v1/batches with what their lines were answered."""

from importlib import import_module

import chat.ids
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

_rls = import_module("chat.migrations.0002_row_level_security")
_TABLES = ("chat_apifile", "chat_batch", "chat_batchresult")


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0015_running_reservations'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Batch',
            fields=[
                ('id', models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('api_key_id', models.BigIntegerField(null=True)),
                ('endpoint', models.CharField(max_length=64)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('metadata', models.JSONField(null=True)),
                ('output_expires_s', models.PositiveIntegerField(null=True)),
                ('input_file', models.UUIDField()),
                ('output_file', models.UUIDField(null=True)),
                ('error_file', models.UUIDField(null=True)),
                ('status', models.CharField(choices=[('validating', 'Validating'), ('failed', 'Failed'), ('in_progress', 'In Progress'), ('finalizing', 'Finalizing'), ('completed', 'Completed'), ('expired', 'Expired'), ('cancelling', 'Cancelling'), ('cancelled', 'Cancelled')], default='validating', max_length=16)),
                ('errors', models.JSONField(default=list)),
                ('num_lines', models.PositiveIntegerField(default=0)),
                ('num_completed', models.PositiveIntegerField(default=0)),
                ('num_failed', models.PositiveIntegerField(default=0)),
                ('prompt_tokens', models.PositiveBigIntegerField(default=0)),
                ('cached_tokens', models.PositiveBigIntegerField(default=0)),
                ('completion_tokens', models.PositiveBigIntegerField(default=0)),
                ('reasoning_tokens', models.PositiveBigIntegerField(default=0)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('in_progress_at', models.DateTimeField(null=True)),
                ('expires_at', models.DateTimeField()),
                ('finalizing_at', models.DateTimeField(null=True)),
                ('completed_at', models.DateTimeField(null=True)),
                ('failed_at', models.DateTimeField(null=True)),
                ('expired_at', models.DateTimeField(null=True)),
                ('cancelling_at', models.DateTimeField(null=True)),
                ('cancelled_at', models.DateTimeField(null=True)),
                ('lease_owner', models.CharField(blank=True, max_length=64)),
                ('lease_until', models.DateTimeField(default=django.utils.timezone.now)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'batches',
            },
        ),
        migrations.CreateModel(
            name='BatchResult',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('is_error', models.BooleanField()),
                ('text', models.TextField()),
                ('batch', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='chat.batch')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='ApiFile',
            fields=[
                ('id', models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('purpose', models.CharField(max_length=32)),
                ('name', models.CharField(max_length=255)),
                ('size_bytes', models.BigIntegerField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(db_index=True, null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['owner', '-id'], name='api_file_recent')],
            },
        ),
        migrations.AddIndex(
            model_name='batch',
            index=models.Index(fields=['owner', '-id'], name='batch_recent'),
        ),
        migrations.AddIndex(
            model_name='batch',
            index=models.Index(condition=models.Q(('status__in', ('validating', 'in_progress', 'finalizing', 'cancelling'))), fields=['lease_until'], name='batch_unfinished'),
        ),
        migrations.AddConstraint(
            model_name='batchresult',
            constraint=models.UniqueConstraint(fields=('batch', 'number'), name='batch_line_answered_once'),
        ),
        *(_rls._protect(table, _rls._VISIBLE) for table in _TABLES),
    ]
