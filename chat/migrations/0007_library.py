"""Folders, pins, tags, the archive, deletion with a way back; and the table of what can be found."""

import chat.ids
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

_SYSTEM = "current_setting('vitrine.scope', true) = 'system'"
_OWN = "current_setting('vitrine.scope', true) = 'user:' || owner_id"
_VISIBLE = f"{_SYSTEM} OR {_OWN}"
# What is deleted is hidden from every door, and with it all that belongs to it, until it is brought
# back or gone. Whoever deletes or brings back says so in its transaction.
_NOT_DELETED = "(deleted_at IS NULL OR current_setting('vitrine.deleted', true) = 'shown')"


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0006_imports'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Folder',
            fields=[
                ('id', models.UUIDField(default=chat.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80)),
                ('version', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='SearchEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('part', models.PositiveSmallIntegerField(default=0)),
                ('created_at', models.DateTimeField()),
                ('terms', django.contrib.postgres.search.SearchVectorField()),
            ],
        ),
        migrations.RemoveIndex(
            model_name='conversation',
            name='conversation_recent',
        ),
        migrations.AddField(
            model_name='conversation',
            name='archived_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='deleted_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='pinned_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='tags',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), blank=True, default=list, size=None),
        ),
        migrations.AddField(
            model_name='folder',
            name='owner',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='folders', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='conversation',
            name='folder',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='conversations', to='chat.folder'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(fields=['owner', '-updated_at', '-id'], name='conversation_recent'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('archived_at', None), ('deleted_at', None), ('folder', None), ('pinned_at', None)), fields=['owner', '-updated_at', '-id'], name='conversation_loose'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(fields=['folder', '-updated_at', '-id'], name='conversation_in_folder'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('archived_at', None), ('deleted_at', None), ('pinned_at__isnull', False)), fields=['owner'], name='conversation_pinned'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('archived_at__isnull', False), ('deleted_at', None)), fields=['owner', '-updated_at', '-id'], name='conversation_archived'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('tags', []), _negated=True), fields=['owner'], name='conversation_tagged'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='conversation_deleted'),
        ),
        migrations.AddField(
            model_name='searchentry',
            name='conversation',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='chat.conversation'),
        ),
        migrations.AddField(
            model_name='searchentry',
            name='message',
            field=models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='chat.message'),
        ),
        migrations.AddField(
            model_name='searchentry',
            name='owner',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name='folder',
            constraint=models.UniqueConstraint(models.F('owner'), django.db.models.functions.text.Lower('name'), name='folder_name_once_per_owner'),
        ),
        migrations.AddIndex(
            model_name='searchentry',
            index=django.contrib.postgres.indexes.GinIndex(fastupdate=False, fields=['terms'], name='searchentry_terms'),
        ),
        migrations.AddIndex(
            model_name='searchentry',
            index=models.Index(condition=models.Q(('message__isnull', False)), fields=['owner', '-created_at', '-id'], name='searchentry_messages'),
        ),
        migrations.AddIndex(
            model_name='searchentry',
            index=models.Index(condition=models.Q(('message', None)), fields=['owner', '-created_at', '-id'], name='searchentry_titles'),
        ),
        migrations.RunSQL(
            sql=f"""
                ALTER POLICY own_rows ON chat_conversation
                    USING ({_SYSTEM} OR {_OWN} AND {_NOT_DELETED}) WITH CHECK ({_VISIBLE});
            """,
            reverse_sql=f"ALTER POLICY own_rows ON chat_conversation USING ({_VISIBLE})",
        ),
        migrations.RunSQL(
            sql=f"""
                ALTER TABLE chat_folder ENABLE ROW LEVEL SECURITY;
                ALTER TABLE chat_folder FORCE ROW LEVEL SECURITY;
                CREATE POLICY own_rows ON chat_folder USING ({_VISIBLE}) WITH CHECK ({_VISIBLE});
            """,
            reverse_sql="""
                DROP POLICY own_rows ON chat_folder;
                ALTER TABLE chat_folder NO FORCE ROW LEVEL SECURITY;
                ALTER TABLE chat_folder DISABLE ROW LEVEL SECURITY;
            """,
        ),
    ]
