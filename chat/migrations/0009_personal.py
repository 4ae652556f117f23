"""Custom instructions, assistants and saved prompts, and what a chat copies of them."""

from importlib import import_module

import chat.ids
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_rls = import_module("chat.migrations.0002_row_level_security")
_SHARED = """
    CREATE POLICY shared_rows ON chat_assistant FOR SELECT
    USING (is_shared AND current_setting('vitrine.scope', true) LIKE 'user:%')
"""  # to be read: what changes a row asks own_rows


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0008_search'),
        ('webapp', '0004_tier_context'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Personalisation',
            fields=[
                ('owner', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('is_on', models.BooleanField(default=True)),
                ('about_you', models.TextField(blank=True)),
                ('how_to_answer', models.TextField(blank=True)),
                ('history_strategy', models.CharField(choices=[('window', 'The newest messages'), ('summary', 'A summary and the newest messages'), ('selective', 'The first message and the newest ones')], default='window', max_length=16)),
                ('version', models.PositiveIntegerField(default=1)),
            ],
        ),
        migrations.AddField(
            model_name='conversation',
            name='assistant',
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='instructions',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='parameters',
            field=models.JSONField(default=dict),
        ),
        migrations.CreateModel(
            name='Assistant',
            fields=[
                ('id', models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80)),
                ('description', models.CharField(blank=True, max_length=200)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('system_prompt', models.TextField(blank=True)),
                ('parameters', models.JSONField(default=dict)),
                ('history_strategy', models.CharField(blank=True, choices=[('window', 'The newest messages'), ('summary', 'A summary and the newest messages'), ('selective', 'The first message and the newest ones')], default='', max_length=16)),
                ('starters', models.JSONField(default=list)),
                ('is_shared', models.BooleanField(default=False)),
                ('version', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'name'], name='assistant_by_name')],
            },
        ),
        migrations.CreateModel(
            name='SavedPrompt',
            fields=[
                ('id', models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=40)),
                ('text', models.TextField()),
                ('version', models.PositiveIntegerField(default=1)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='saved_prompt_name_once')],
            },
        ),
        *(
            _rls._protect(table, _rls._VISIBLE)
            for table in ("chat_personalisation", "chat_assistant", "chat_savedprompt")
        ),
        migrations.RunSQL(
            _SHARED, "DROP POLICY shared_rows ON chat_assistant"
        ),
    ]
