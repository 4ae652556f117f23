"""What long conversations leave out, and the summaries that stand in for it."""

from importlib import import_module

import chat.ids
import django.db.models.deletion
from django.db import migrations, models

_protect = import_module("chat.migrations.0002_row_level_security")._protect


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0004_traces'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='history_strategy',
            field=models.CharField(choices=[('window', 'The newest messages'), ('summary', 'A summary and the newest messages'), ('selective', 'The first message and the newest ones')], default='window', max_length=16),
        ),
        migrations.AddField(
            model_name='message',
            name='is_pinned',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='message',
            name='left_out',
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name='Summary',
            fields=[
                ('id', models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('text', models.TextField()),
                ('model', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='summaries', to='chat.conversation')),
                ('until', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chat.message')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('until',), name='summary_once')],
            },
        ),
        _protect(
            "chat_summary",
            "EXISTS (SELECT 1 FROM chat_conversation c WHERE c.id = conversation_id)",
        ),
    ]
