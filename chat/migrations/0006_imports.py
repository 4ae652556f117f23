"""Imports under way, and where imported chats came from; times of rows may be those of the origin."""

import chat.ids
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


_OWN = """
    current_setting('vitrine.scope', true) = 'system'
    OR current_setting('vitrine.scope', true) = 'user:' || owner_id
"""


def _protect(table):
    return migrations.RunSQL(
        sql=f"""
            ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
            ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
            CREATE POLICY own_rows ON {table} USING ({_OWN}) WITH CHECK ({_OWN});
        """,
        reverse_sql=f"DROP POLICY own_rows ON {table};",
    )


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0005_prompt_plan'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name='conversation',
            name='created_at',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False),
        ),
        migrations.AlterField(
            model_name='message',
            name='created_at',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False),
        ),
        migrations.CreateModel(
            name='ChatImport',
            fields=[
                ('id', models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('file_name', models.CharField(max_length=200)),
                ('size_bytes', models.BigIntegerField()),
                ('status', models.CharField(choices=[('checking', 'Checking'), ('checked', 'Checked'), ('importing', 'Importing'), ('done', 'Done'), ('failed', 'Failed')], default='checking', max_length=16)),
                ('report', models.JSONField(default=dict)),
                ('error', models.CharField(blank=True, max_length=300)),
                ('lease_owner', models.CharField(blank=True, max_length=64)),
                ('lease_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chat_imports', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='ChatOrigin',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('origin', models.CharField(max_length=200)),
                ('content_hash', models.CharField(max_length=64)),
                ('chat_import', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='origins', to='chat.chatimport')),
                ('conversation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='imported_from', to='chat.conversation')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddIndex(
            model_name='chatimport',
            index=models.Index(fields=['owner', '-id'], name='import_recent'),
        ),
        migrations.AddIndex(
            model_name='chatimport',
            index=models.Index(condition=models.Q(('status__in', ('checking', 'importing'))), fields=['lease_until'], name='import_working'),
        ),
        migrations.AddConstraint(
            model_name='chatorigin',
            constraint=models.UniqueConstraint(fields=('owner', 'origin', 'content_hash'), name='chat_imported_once'),
        ),
        _protect("chat_chatimport"),
        _protect("chat_chatorigin"),
    ]
